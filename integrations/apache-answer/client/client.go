// Package client maps the contents of an Apache Answer site, and searches for them, onto askalike's HTTP API.
// It depends on the standard library alone.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	mostBytes   = 32 << 20
	mostHits    = 100
	readTimeout = 5 * time.Second
	sendTimeout = 60 * time.Second
)

// Settings say which service is asked; the forms of both plugins fill them in.
type Settings struct {
	// Address of the service, with the forum's path where it has several.
	Address string `json:"address"`
	// KeyVariable names the environment variable that holds a key that may write; "" where none is needed.
	KeyVariable string `json:"key_variable"`
	// Minimum is the least probability of what the ask form shows: a number, "precision:0.9", or "default".
	Minimum string `json:"minimum"`
	// IsReader leaves what the service holds to another plugin.
	IsReader bool `json:"is_reader"`
}

// Content is a question or an answer as the site holds it.
type Content struct {
	ID, QuestionID, Title, Body, Markup, Author string
	Tags                                        []string
	IsAnswer, IsAccepted, IsClosed, IsGone      bool
	Created, Active                             int64
	Score                                       *int64
}

// Condition is what a search of the site asks for.
type Condition struct {
	Text               string
	Page, PageSize     int
	Tags               [][]string // each group by any of its tags
	Author, QuestionID string
	Order              string
	IsAccepted         *bool // of answers
	Votes, Answers     int
	IsForm             bool // it is asked while somebody writes a question
}

// Found is a question or an answer that fits.
type Found struct {
	ID, Answer string // Answer: the id of the best answer
	Score      float64
	question   question
	answers    int
}

// StatusError is a refusal.
type StatusError struct {
	Status  int
	Message string
	Wait    time.Duration // what the service asks to wait
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("askalike answered %d: %s", e.Status, e.Message)
}

// isLasting returns whether the same request would be refused again.
func isLasting(err error) bool {
	var refusal *StatusError
	return errors.As(err, &refusal) && refusal.Status < 500 && refusal.Status != 408 && refusal.Status != 429
}

// Client asks one service.
type Client struct {
	address, key, minimum string
	web                   *http.Client
}

// New returns a client, or says what of the settings cannot be used.
func New(given Settings) (*Client, error) {
	parsed, err := url.Parse(strings.TrimRight(given.Address, "/"))
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, errors.New("the address of askalike is none: expected one such as https://askalike.example.org")
	}
	key := ""
	if given.KeyVariable != "" {
		if key = os.Getenv(given.KeyVariable); key == "" {
			return nil, fmt.Errorf("Answer's environment has no %s: set it to a key that may write", given.KeyVariable)
		}
	}
	if given.Minimum == "" {
		given.Minimum = "default"
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{parsed.String(), key, given.Minimum, &http.Client{CheckRedirect: refuse}}, nil
}

func (c *Client) send(ctx context.Context, method, path, kind string, content []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	answer, err := c.web.Do(request)
	if err != nil {
		return nil, fmt.Errorf("askalike cannot be reached: %w", err)
	}
	defer answer.Body.Close()
	found, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("askalike broke off its answer: %w", err)
	}
	if len(found) > mostBytes {
		return nil, fmt.Errorf("askalike gave an answer of more than %d bytes", mostBytes)
	}
	if answer.StatusCode != http.StatusOK {
		said := struct{ Error, Hint string }{Error: answer.Status}
		_ = json.Unmarshal(found, &said) // a proxy may have answered
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, &StatusError{answer.StatusCode, strings.TrimSpace(said.Error + " " + said.Hint), time.Duration(seconds) * time.Second}
	}
	return found, nil
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	var content []byte
	if body != nil {
		content, _ = json.Marshal(body) // strings and numbers alone
	}
	found, err := c.send(ctx, method, path, "application/json", content)
	if err == nil && into != nil {
		if err = json.Unmarshal(found, into); err != nil {
			err = fmt.Errorf("askalike answered no JSON: %w", err)
		}
	}
	return err
}

// -- what the site holds -----------------------------------------------------------------------------------------

type record struct {
	ID         string   `json:"id"`
	QuestionID string   `json:"question_id,omitempty"`
	Title      string   `json:"title,omitempty"`
	Body       string   `json:"body"`
	Markup     string   `json:"markup"`
	Tags       []string `json:"tags,omitempty"`
	Created    string   `json:"created,omitempty"`
	Closed     string   `json:"closed,omitempty"`
	Score      *int64   `json:"score,omitempty"`
	Author     string   `json:"author"`
	Accepted   bool     `json:"accepted,omitempty"`
}

func recordOf(content Content) record {
	made := record{ID: content.ID, Body: content.Body, Markup: content.Markup, Score: content.Score, Author: content.Author}
	made.Created = moment(content.Created)
	if content.IsAnswer {
		made.QuestionID, made.Accepted = content.QuestionID, content.IsAccepted
		return made
	}
	made.Title, made.Tags = content.Title, content.Tags
	if content.IsClosed {
		made.Closed = moment(content.Active)
	}
	return made
}

func moment(seconds int64) string {
	if seconds <= 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// Write stores or deletes one content; it is on disk when nil is returned.
func (c *Client) Write(ctx context.Context, content Content) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	places := []string{"/v1/questions/", "/v1/answers/"}
	if content.IsGone {
		for _, place := range places { // the site does not say which it was
			err := c.call(ctx, http.MethodDelete, place+url.PathEscape(content.ID), nil, nil)
			var refusal *StatusError
			if !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
				return err
			}
		}
		return nil
	}
	place := places[0]
	if content.IsAnswer {
		place = places[1]
	}
	return c.call(ctx, http.MethodPut, place+url.PathEscape(content.ID), recordOf(content), nil)
}

// writeAll stores many questions; it returns those that were refused, perhaps because the service was busy.
func (c *Client) writeAll(ctx context.Context, questions []Content) ([]Content, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var lines bytes.Buffer
	for _, one := range questions {
		line, _ := json.Marshal(recordOf(one))
		lines.Write(append(line, '\n'))
	}
	found, err := c.send(ctx, http.MethodPost, "/v1/questions:bulk", "application/x-ndjson", lines.Bytes())
	if err != nil {
		return nil, err
	}
	var refused []Content
	stored, isDone := 0, false
	for _, line := range bytes.Split(bytes.TrimSpace(found), []byte("\n")) {
		var told struct {
			Error string
			Done  bool
			Line  int
		}
		if err := json.Unmarshal(line, &told); err != nil {
			return nil, fmt.Errorf("askalike answered no JSON: %w", err)
		}
		switch {
		case told.Line < 1 || told.Line > len(questions): // the last line
			isDone = told.Done
		case told.Error != "":
			refused = append(refused, questions[told.Line-1])
		default:
			stored++
		}
	}
	if !isDone || stored+len(refused) < len(questions) {
		return nil, fmt.Errorf("askalike acknowledged %d of %d questions", stored, len(questions))
	}
	return refused, nil
}

// -- searches ----------------------------------------------------------------------------------------------------

type question struct {
	ID, Title, Author string
	Tags              []string
	Created           string
	Score             int64
}

type answer struct {
	ID, Author, Created string
	Score               int64
	Accepted            bool
}

// Similar returns the questions that ask the same as a text, most likely first.
func (c *Client) Similar(ctx context.Context, text string, most int, minimum string) ([]Found, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	title, body, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if letters := []rune(title); len(letters) > 1000 {
		title, body = string(letters[:1000]), string(letters[1000:])+"\n"+body
	}
	if most > mostHits {
		most = mostHits
	}
	asked := map[string]any{"title": strings.TrimSpace(title), "body": body, "k": most, "minimum": least(minimum)}
	var told struct {
		Hits []struct {
			Question   question
			Likelihood struct{ Value float64 } // null where the ranker cannot tell
			BestAnswer *answer                 `json:"best_answer"`
			Answers    int
		}
	}
	if strings.TrimSpace(text) == "" || most < 1 {
		return nil, nil
	}
	if err := c.call(ctx, http.MethodPost, "/v1/similar", asked, &told); err != nil {
		return nil, err
	}
	var found []Found
	for _, hit := range told.Hits {
		one := Found{ID: hit.Question.ID, Score: hit.Likelihood.Value, question: hit.Question, answers: hit.Answers}
		if hit.BestAnswer != nil {
			one.Answer = hit.BestAnswer.ID
		}
		found = append(found, one)
	}
	return found, nil
}

func least(minimum string) any {
	if number, err := strconv.ParseFloat(minimum, 64); err == nil {
		return number
	}
	return minimum
}

// Questions returns a page of the questions that fit, and how many fit in all, of the 100 most likely.
func (c *Client) Questions(ctx context.Context, asked Condition) ([]Found, int64, error) {
	minimum := "0"
	if asked.IsForm {
		minimum = c.minimum
	}
	var found []Found
	var err error
	if strings.TrimSpace(asked.Text) == "" {
		found, err = c.newest(ctx, asked)
	} else {
		found, err = c.Similar(ctx, asked.Text, mostHits, minimum)
	}
	if err != nil {
		return nil, 0, err
	}
	var fitting []Found
	for _, one := range found {
		if fits(one, asked) {
			fitting = append(fitting, one)
		}
	}
	ordered(fitting, asked.Order)
	first, end := window(len(fitting), asked)
	return fitting[first:end], int64(len(fitting)), nil
}

// Answers returns a page of answers: those of one question, or the best of each question that fits.
func (c *Client) Answers(ctx context.Context, asked Condition) ([]Found, int64, error) {
	if asked.QuestionID == "" {
		whole := asked
		whole.Page, whole.PageSize, whole.Author, whole.Votes = 1, mostHits, "", 0 // these are the answer's
		found, _, err := c.Questions(ctx, whole)
		if err != nil {
			return nil, 0, err
		}
		var answers []Found
		for _, one := range found {
			if one.Answer != "" {
				answers = append(answers, Found{ID: one.Answer, Score: one.Score})
			}
		}
		first, end := window(len(answers), asked)
		return answers[first:end], int64(len(answers)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var told struct{ Answers []answer }
	err := c.call(ctx, http.MethodGet, "/v1/questions/"+url.PathEscape(asked.QuestionID), nil, &told)
	var refusal *StatusError
	if errors.As(err, &refusal) && refusal.Status == http.StatusNotFound {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var fitting []Found
	for _, one := range told.Answers {
		if (asked.IsAccepted == nil || *asked.IsAccepted == one.Accepted) && (asked.Votes <= 0 || int(one.Score) >= asked.Votes) &&
			(asked.Author == "" || asked.Author == one.Author) {
			made := Found{ID: one.ID, question: question{Created: one.Created, Score: one.Score}}
			fitting = append(fitting, made)
		}
	}
	ordered(fitting, asked.Order)
	first, end := window(len(fitting), asked)
	return fitting[first:end], int64(len(fitting)), nil
}

// newest returns the newest questions, for a search that has no words.
func (c *Client) newest(ctx context.Context, asked Condition) ([]Found, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var found []Found
	after := ""
	for page := 0; page < 10; page++ {
		var told struct {
			Questions []struct {
				question
				Answers int
			}
			Next string
		}
		path := "/v1/questions?limit=100"
		if after != "" {
			path += "&after=" + url.QueryEscape(after)
		}
		if err := c.call(ctx, http.MethodGet, path, nil, &told); err != nil {
			return nil, err
		}
		for _, one := range told.Questions {
			found = append(found, Found{ID: one.ID, question: one.question, answers: one.Answers})
		}
		if after = told.Next; after == "" {
			break
		}
	}
	return found, nil
}
