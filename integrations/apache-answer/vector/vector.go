// Package vector lets Apache Answer's semantic search ask askalike.
package vector

import (
	"context"
	"encoding/json"
	"strings"

	"askalike.dev/apache-answer/client"
	"github.com/apache/answer/plugin"
)

// Search is the plugin.
type Search struct{ client.Plugin }

func init() { plugin.Register(&Search{}) }

func text(said string) plugin.Translator {
	return plugin.Translator{Fn: func(*plugin.GinContext) string { return said }}
}

// Info names the plugin.
func (s *Search) Info() plugin.Info {
	return plugin.Info{Name: text("askalike semantic search"), SlugName: "askalike_vector", Author: "askalike",
		Version: "0.1.0", Description: text("Finds questions that ask the same, with their best answers")}
}

// Description has nothing to show.
func (s *Search) Description() plugin.VectorSearchDesc { return plugin.VectorSearchDesc{} }

// ConfigFields are the plugin's form.
func (s *Search) ConfigFields() []plugin.ConfigField {
	given := s.Settings()
	return []plugin.ConfigField{
		{Name: "address", Type: plugin.ConfigTypeInput, Title: text("Address"), Required: true, Value: given.Address,
			Description: text("Of askalike's service, such as http://127.0.0.1:8765")},
		{Name: "key_variable", Type: plugin.ConfigTypeInput, Title: text("Variable of the key"), Value: given.KeyVariable,
			Description: text("The variable of Answer's environment that holds a key")},
		{Name: "is_reader", Type: plugin.ConfigTypeSwitch, Title: text("Only read"), Value: given.IsReader,
			Description: text("Write nothing: the plugin askalike search is enabled too, and writes more of each question")},
	}
}

// ConfigReceiver takes the form.
func (s *Search) ConfigReceiver(config []byte) error { return s.Configure(config) }

// RegisterSyncer sends everything, in the background.
func (s *Search) RegisterSyncer(_ context.Context, syncer plugin.VectorSearchSyncer) {
	if writer := s.Writer(); writer != nil {
		writer.Sync(pages(syncer.GetQuestionsPage), pages(syncer.GetAnswersPage))
	}
}

func pages(get func(context.Context, int, int) ([]*plugin.VectorSearchContent, error)) client.Pages {
	return func(ctx context.Context, page, size int) ([]client.Content, error) {
		found, err := get(ctx, page, size)
		made := make([]client.Content, 0, len(found))
		for _, one := range found {
			made = append(made, contentOf(one))
		}
		return made, err
	}
}

// contentOf takes apart what Answer joins: "Question: title\nbody\n\nAnswer: …\n\nComment: …". A body in which a
// paragraph begins with such a word ends there.
func contentOf(one *plugin.VectorSearchContent) client.Content {
	var about plugin.VectorSearchMetadata
	_ = json.Unmarshal([]byte(one.Metadata), &about) // by Answer itself; without it, an answer is refused and named
	body := strings.TrimPrefix(one.Content, "Question: "+one.Title)
	isAnswer := one.ObjectType == "answer"
	if isAnswer {
		body = strings.TrimPrefix(strings.TrimPrefix(body, "\n\n"), "Answer: ")
	} else {
		body, _, _ = strings.Cut(strings.TrimPrefix(body, "\n"), "\n\nAnswer: ")
	}
	body, _, _ = strings.Cut(body, "\n\nComment: ")
	return client.Content{ID: one.ObjectID, QuestionID: about.QuestionID, Title: one.Title, Body: body,
		Markup: "markdown", IsAnswer: isAnswer}
}

// UpdateContent sends one content.
func (s *Search) UpdateContent(_ context.Context, content *plugin.VectorSearchContent) error {
	return s.Put(contentOf(content))
}

// DeleteContent deletes one.
func (s *Search) DeleteContent(_ context.Context, objectID string) error {
	return s.Put(client.Content{ID: objectID, IsGone: true})
}

// SearchSimilar returns questions, most likely first; the score is the probability that one asks the same.
func (s *Search) SearchSimilar(ctx context.Context, query string, topK int) ([]plugin.VectorSearchResult, error) {
	asked, err := s.Client()
	if err != nil {
		return nil, err
	}
	found, err := asked.Similar(ctx, query, topK, "0")
	if err != nil {
		return nil, err
	}
	results := make([]plugin.VectorSearchResult, 0, len(found))
	for _, one := range found {
		about := plugin.VectorSearchMetadata{QuestionID: one.ID}
		if one.Answer != "" {
			about.Answers = []plugin.VectorSearchMetadataAnswer{{AnswerID: one.Answer}}
		}
		said, _ := json.Marshal(about) // strings alone
		results = append(results, plugin.VectorSearchResult{ObjectID: one.ID, ObjectType: "question",
			Metadata: string(said), Score: one.Score})
	}
	return results, nil
}

var (
	_ plugin.VectorSearch = (*Search)(nil)
	_ plugin.Config       = (*Search)(nil)
)
