package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// service answers with what answers returns, and remembers what it was asked.
func service(t *testing.T, answers func(method, path, body string) (int, string)) (*Client, func() []string) {
	t.Helper()
	var mutex sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization")+" "+string(body))
		mutex.Unlock()
		status, said := answers(r.Method, r.URL.Path, string(body))
		if status == 302 {
			w.Header().Set("Location", "http://127.0.0.1:1/")
		}
		if status == 429 {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, said)
	}))
	t.Cleanup(server.Close)
	t.Setenv("ASKALIKE_TEST_KEY", "secret")
	made, err := New(Settings{Address: server.URL + "/", KeyVariable: "ASKALIKE_TEST_KEY", Minimum: "0.3"})
	if err != nil {
		t.Fatal(err)
	}
	return made, func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return append([]string{}, asked...)
	}
}

func writer(t *testing.T, c *Client) (*Writer, *[]time.Duration) {
	t.Helper()
	w := NewWriter(c)
	var rests []time.Duration
	w.rest = func(_ context.Context, d time.Duration) { rests = append(rests, d) }
	t.Cleanup(w.Close)
	return w, &rests
}

func TestSettingsThatCannotBeUsedAreNamed(t *testing.T) {
	for _, address := range []string{"", "ftp://a.example.org", "https://user:pass@a.example.org", "https://a?x=1"} {
		if _, err := New(Settings{Address: address}); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
	if _, err := New(Settings{Address: "https://a", KeyVariable: "NO_SUCH_VARIABLE"}); err == nil {
		t.Error("a variable that is not there was taken")
	}
}

func TestContentsAreWrittenWithTheirFields(t *testing.T) {
	c, asked := service(t, func(string, string, string) (int, string) { return 200, `{"id": "1"}` })
	score := int64(0)
	question := Content{ID: "10/1", Title: "Wifi drops", Body: "<p>x</p>", Markup: "html", Tags: []string{"3"},
		Author: "u", Created: 1700000000, Active: 1700000100, Score: &score, IsClosed: true}
	answer := Content{ID: "2", QuestionID: "10/1", Body: "Move it", Markup: "markdown", IsAnswer: true, IsAccepted: true}
	for _, one := range []Content{question, answer} {
		if err := c.Write(context.Background(), one); err != nil {
			t.Fatal(err)
		}
	}
	wanted := []string{
		`PUT /v1/questions/10%2F1 Bearer secret {"id":"10/1","title":"Wifi drops","body":"\u003cp\u003ex\u003c/p\u003e",` +
			`"markup":"html","tags":["3"],"created":"2023-11-14T22:13:20Z","closed":"2023-11-14T22:15:00Z","score":0,"author":"u"}`,
		`PUT /v1/answers/2 Bearer secret {"id":"2","question_id":"10/1","body":"Move it","markup":"markdown","author":"","accepted":true}`,
	}
	if found := asked(); !reflect.DeepEqual(found, wanted) {
		t.Errorf("%q", found)
	}
}

func TestWhatIsDeletedMayBeAQuestionOrAnAnswer(t *testing.T) {
	c, asked := service(t, func(_, path, _ string) (int, string) {
		if strings.HasPrefix(path, "/v1/questions/") {
			return 404, `{"error": "there is no question 5"}`
		}
		return 200, `{"id": "5"}`
	})
	if err := c.Write(context.Background(), Content{ID: "5", IsGone: true}); err != nil || len(asked()) != 2 {
		t.Error(err, asked())
	}
}

func TestAChangeIsSentAgainUntilItIsStoredAndOnlyItsLastState(t *testing.T) {
	var mutex sync.Mutex
	isDown, down := true, make(chan struct{}, 99)
	c, asked := service(t, func(string, string, string) (int, string) {
		mutex.Lock()
		defer mutex.Unlock()
		if isDown {
			down <- struct{}{}
			return 429, `{"error": "too many requests"}`
		}
		return 200, `{}`
	})
	w, rests := writer(t, c)
	first := make(chan struct{})
	w.rest = func(_ context.Context, d time.Duration) { *rests = append(*rests, d); <-first }
	_ = w.Put(Content{ID: "1", Title: "first"})
	<-down
	for _, title := range []string{"second", "third"} {
		_ = w.Put(Content{ID: "1", Title: title})
	}
	mutex.Lock()
	isDown = false
	mutex.Unlock()
	close(first)
	if err := w.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	found := asked()
	last := found[len(found)-1]
	if !strings.Contains(last, `"third"`) || strings.Contains(strings.Join(found, ""), `"second"`) {
		t.Error(found)
	}
	if len(*rests) == 0 || (*rests)[0] != 7*time.Second {
		t.Error("Retry-After was not heeded:", *rests)
	}
}

func TestWhatIsRefusedForGoodKeepsNoOtherWaiting(t *testing.T) {
	c, asked := service(t, func(_, path, _ string) (int, string) {
		if strings.HasSuffix(path, "/1") {
			return 422, `{"error": "title is empty", "hint": "give one"}`
		}
		return 200, `{}`
	})
	w, _ := writer(t, c)
	_, _ = w.Put(Content{ID: "1"}), w.Put(Content{ID: "2"})
	if err := w.Settle(context.Background()); err != nil || len(asked()) != 2 {
		t.Error(err, asked())
	}
}

func TestNobodyIsLedElsewhereAndStrangeAnswersAreErrors(t *testing.T) {
	for status, said := range map[int]string{302: "", 200: "<html>", 503: "sorry"} {
		c, _ := service(t, func(string, string, string) (int, string) { return status, said })
		if _, err := c.Similar(context.Background(), "wifi", 5, "0"); err == nil {
			t.Error(status, "was taken")
		}
	}
}

func TestALongQueryIsSplitIntoTitleAndBody(t *testing.T) {
	c, asked := service(t, func(string, string, string) (int, string) { return 200, `{"hits": []}` })
	_, _ = c.Similar(context.Background(), strings.Repeat("ä", 1200)+"\nmore", 500, "precision:0.9")
	var sent struct {
		Title, Body, Minimum string
		K                    int
	}
	_, body, _ := strings.Cut(asked()[0], "secret ")
	if err := json.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatal(err)
	}
	if len([]rune(sent.Title)) != 1000 || sent.Body != strings.Repeat("ä", 200)+"\nmore" || sent.K != 100 || sent.Minimum != "precision:0.9" {
		t.Error(sent)
	}
}

func TestQuestionsAreFilteredOrderedAndPaged(t *testing.T) {
	hits := `{"hits": [
		{"question": {"id": "1", "author": "u", "tags": ["3"], "created": "2024-01-01T00:00:00Z", "score": 5},
			"likelihood": {"value": 0.9}, "answers": 1, "best_answer": {"id": "11"}},
		{"question": {"id": "2", "author": "v", "tags": ["4"], "created": "2025-01-01T00:00:00Z", "score": null},
			"likelihood": {"value": 0.8}, "answers": 0, "best_answer": null},
		{"question": {"id": "3", "author": "u", "tags": ["3", "4"], "created": null, "score": 9},
			"likelihood": {"value": 0.7}, "answers": 2, "best_answer": {"id": "13"}}]}`
	c, asked := service(t, func(string, string, string) (int, string) { return 200, hits })
	ids := func(find func(context.Context, Condition) ([]Found, int64, error), asked Condition) (found string, total int64) {
		list, total, err := find(context.Background(), asked)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			found += one.ID + " "
		}
		return found, total
	}
	for _, one := range []struct {
		asked  Condition
		wanted string
		total  int64
	}{
		{Condition{Text: "wifi", Page: 1, PageSize: 10}, "1 2 3 ", 3},
		{Condition{Text: "wifi", Page: 2, PageSize: 2}, "3 ", 3},
		{Condition{Text: "wifi", Page: 1 << 60, PageSize: 2}, "", 3},
		{Condition{Text: "wifi", Tags: [][]string{{"4", "9"}}}, "2 3 ", 2},
		{Condition{Text: "wifi", Author: "u", Votes: 6}, "3 ", 1},
		{Condition{Text: "wifi", Answers: 1, Votes: -1}, "1 3 ", 2},
		{Condition{Text: "wifi", Order: "newest"}, "2 1 3 ", 3},
		{Condition{Text: "wifi", Order: "score"}, "3 1 2 ", 3},
	} {
		if found, total := ids(c.Questions, one.asked); found != one.wanted || total != one.total {
			t.Errorf("%+v found %s of %d", one.asked, found, total)
		}
	}
	if found, total := ids(c.Answers, Condition{Text: "wifi"}); found != "11 13 " || total != 2 {
		t.Error(found, total)
	}
	_, _, _ = c.Questions(context.Background(), Condition{Text: "wifi", IsForm: true})
	requests := asked()
	if !strings.Contains(requests[0], `"minimum":0,`) || !strings.Contains(requests[len(requests)-1], `"minimum":0.3,`) {
		t.Error(requests)
	}
}

func TestABulkThatIsNotAcknowledgedIsNoSuccess(t *testing.T) {
	one, other := Content{ID: "1", Title: "a"}, Content{ID: "2", Title: "b"}
	for said, wanted := range map[string]int{
		"{\"line\": 1, \"id\": \"1\"}\n{\"line\": 2, \"id\": \"2\"}\n{\"done\": true, \"stored\": 2, \"refused\": 0}\n":                  0,
		"{\"line\": 1, \"id\": \"1\"}\n{\"line\": 2, \"id\": null, \"error\": \"x\"}\n{\"done\": true, \"stored\": 1, \"refused\": 1}\n": 1,
		"{\"line\": 1, \"id\": \"1\"}\n{\"done\": true, \"stored\": 1, \"refused\": 0}\n":                                                -1,
		"{\"line\": 1, \"id\": \"1\"}\n{\"line\": 2, \"id\": \"2\"}\n{\"error\": \"no whole line came\"}\n":                              -1,
		"": -1,
	} {
		c, _ := service(t, func(string, string, string) (int, string) { return 200, said })
		refused, err := c.writeAll(context.Background(), []Content{one, other})
		if (err != nil) != (wanted < 0) || (wanted >= 0 && len(refused) != wanted) {
			t.Errorf("%q gave %v, %v", said, refused, err)
		}
	}
}
