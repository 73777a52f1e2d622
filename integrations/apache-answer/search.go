// Package answer lets Apache Answer search by askalike, in its ask form and on its search page.
package answer

import (
	"context"
	"strings"

	"askalike.dev/apache-answer/client"
	"github.com/apache/answer/plugin"
)

const (
	statusClosed = 2 // of questions, as Answer stores it
	asQuestion   = "question"
	asAnswer     = "answer"
)

// Search is the plugin.
type Search struct{ client.Plugin }

func init() { plugin.Register(&Search{}) }

func text(said string) plugin.Translator {
	return plugin.Translator{Fn: func(*plugin.GinContext) string { return said }}
}

// Info names the plugin.
func (s *Search) Info() plugin.Info {
	return plugin.Info{Name: text("askalike search"), SlugName: "askalike_search", Author: "askalike", Version: "0.1.0",
		Description: text("Finds questions that ask the same, by words and by meaning")}
}

// Description has nothing to show.
func (s *Search) Description() plugin.SearchDesc { return plugin.SearchDesc{} }

// ConfigFields are the plugin's form.
func (s *Search) ConfigFields() []plugin.ConfigField {
	given := s.Settings()
	field := func(name, title, about, value string, isRequired bool) plugin.ConfigField {
		return plugin.ConfigField{Name: name, Type: plugin.ConfigTypeInput, Title: text(title), Description: text(about),
			Required: isRequired, Value: value, UIOptions: plugin.ConfigFieldUIOptions{InputType: plugin.InputTypeText}}
	}
	return []plugin.ConfigField{
		field("address", "Address", "Of askalike's service, such as http://127.0.0.1:8765", given.Address, true),
		field("key_variable", "Variable of the key", "The variable of Answer's environment that holds a key that may write",
			given.KeyVariable, false),
		field("minimum", "Least probability in the ask form", "A number such as 0.3, precision:0.9, or default",
			given.Minimum, false),
	}
}

// ConfigReceiver takes the form.
func (s *Search) ConfigReceiver(config []byte) error { return s.Configure(config) }

// RegisterSyncer sends everything, in the background: the request that ctx belongs to does not wait.
func (s *Search) RegisterSyncer(_ context.Context, syncer plugin.SearchSyncer) {
	if writer := s.Writer(); writer != nil {
		writer.Sync(pages(syncer.GetQuestionsPage), pages(syncer.GetAnswersPage))
	}
}

func pages(get func(context.Context, int, int) ([]*plugin.SearchContent, error)) client.Pages {
	return func(ctx context.Context, page, size int) ([]client.Content, error) {
		found, err := get(ctx, page, size)
		made := make([]client.Content, 0, len(found))
		for _, one := range found {
			made = append(made, contentOf(one, "html")) // pages hold what was rendered
		}
		return made, err
	}
}

func contentOf(one *plugin.SearchContent, markup string) client.Content {
	score := one.Score
	isClosed := one.Type == asQuestion && one.Status == statusClosed
	return client.Content{
		ID: one.ObjectID, QuestionID: one.QuestionID, Title: one.Title, Body: one.Content, Markup: markup,
		Author: one.UserID, Tags: one.Tags, Created: one.Created, Active: one.Active, Score: &score,
		IsAnswer: one.Type == asAnswer, IsAccepted: one.HasAccepted, IsClosed: isClosed,
		IsGone: one.Status != plugin.SearchContentStatusAvailable && !isClosed, // deleted, or waits for review
	}
}

// UpdateContent sends one content as its author wrote it.
func (s *Search) UpdateContent(_ context.Context, content *plugin.SearchContent) error {
	return s.Put(contentOf(content, "markdown"))
}

// DeleteContent deletes one.
func (s *Search) DeleteContent(_ context.Context, objectID string) error {
	return s.Put(client.Content{ID: objectID, IsGone: true})
}

func conditionOf(cond *plugin.SearchBasicCond) client.Condition {
	made := client.Condition{
		Text: strings.Join(cond.Words, " "), Page: cond.Page, PageSize: cond.PageSize, Tags: cond.TagIDs,
		Author: cond.UserID, QuestionID: cond.QuestionID, Order: string(cond.Order),
		Votes: cond.VoteAmount, Answers: cond.AnswerAmount,
		IsForm: cond.Order == "", // the search page always names an order, the ask form none
	}
	if cond.AnswerAccepted != plugin.AcceptedCondAll {
		isAccepted := cond.AnswerAccepted == plugin.AcceptedCondTrue
		made.IsAccepted = &isAccepted
	}
	return made
}

func (s *Search) search(ctx context.Context, cond *plugin.SearchBasicCond, kind string) ([]plugin.SearchResult, int64, error) {
	asked, err := s.Client()
	if err != nil {
		return nil, 0, err
	}
	find := asked.Questions
	if kind == asAnswer {
		find = asked.Answers
	}
	found, total, err := find(ctx, conditionOf(cond))
	results := make([]plugin.SearchResult, 0, len(found))
	for _, one := range found {
		results = append(results, plugin.SearchResult{ID: one.ID, Type: kind})
	}
	return results, total, err
}

// SearchContents finds questions: an answer is found by its question.
func (s *Search) SearchContents(ctx context.Context, cond *plugin.SearchBasicCond) ([]plugin.SearchResult, int64, error) {
	return s.search(ctx, cond, asQuestion)
}

// SearchQuestions finds questions; the ask form shows these.
func (s *Search) SearchQuestions(ctx context.Context, cond *plugin.SearchBasicCond) ([]plugin.SearchResult, int64, error) {
	return s.search(ctx, cond, asQuestion)
}

// SearchAnswers finds answers of one question, or the best answer of each question that fits.
func (s *Search) SearchAnswers(ctx context.Context, cond *plugin.SearchBasicCond) ([]plugin.SearchResult, int64, error) {
	return s.search(ctx, cond, asAnswer)
}

var (
	_ plugin.Search = (*Search)(nil)
	_ plugin.Config = (*Search)(nil)
)
