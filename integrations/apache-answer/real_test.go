package answer

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"askalike.dev/apache-answer/client"
	"askalike.dev/apache-answer/vector"
	"github.com/apache/answer/plugin"
)

// started gives the address of a real service of an empty forum.
func started(t *testing.T) string {
	t.Helper()
	python := os.Getenv("ASKALIKE_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import askalike, starlette, uvicorn").Run(); err != nil {
		t.Skipf("askalike with its extra serve is not installed for %s (ASKALIKE_PYTHON): %v", python, err)
	}
	folder := filepath.Join(t.TempDir(), "f")
	made := "import sys; from askalike import Forum; Forum.create(sys.argv[1]).close()"
	if said, err := exec.Command(python, "-c", made, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	serve := exec.Command(python, "-m", "askalike", "serve", folder, "--port", fmt.Sprint(port))
	serve.Stderr = os.Stderr
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if answer, err := http.Get(address + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return address
			}
		}
		if time.Now().After(until) {
			t.Fatal("the service does not answer")
		}
	}
}

// site is a fake Answer: pages of what it holds.
type site struct{ questions, answers []*plugin.SearchContent }

func page(all []*plugin.SearchContent, number, size int) ([]*plugin.SearchContent, error) {
	first, end := (number-1)*size, number*size
	if first > len(all) {
		first = len(all)
	}
	if end > len(all) {
		end = len(all)
	}
	return all[first:end], nil
}

func (s *site) GetQuestionsPage(_ context.Context, number, size int) ([]*plugin.SearchContent, error) {
	return page(s.questions, number, size)
}

func (s *site) GetAnswersPage(_ context.Context, number, size int) ([]*plugin.SearchContent, error) {
	return page(s.answers, number, size)
}

func content(id, kind, question, title, body string, status int) *plugin.SearchContent {
	return &plugin.SearchContent{ObjectID: id, Type: kind, QuestionID: question, Title: title, Content: body,
		Status: plugin.SearchContentStatus(status), Tags: []string{"7"}, UserID: "9", Created: 1700000000, Active: 1700000100}
}

func settled(t *testing.T, writer *client.Writer) {
	t.Helper()
	ctx, end := context.WithTimeout(context.Background(), 2*time.Minute)
	defer end()
	if err := writer.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}

func configured(t *testing.T, receive func([]byte) error, given client.Settings) {
	t.Helper()
	said, _ := json.Marshal(given)
	if err := receive(said); err != nil {
		t.Fatal(err)
	}
}

func TestBothPluginsRegister(t *testing.T) {
	if len(plugin.Registered) != 2 {
		t.Fatal(plugin.Registered)
	}
	for _, one := range plugin.Registered {
		if one.Info().SlugName == "" || one.Info().Name.Fn(nil) == "" {
			t.Error(one)
		}
	}
	if _, _, err := new(Search).SearchQuestions(context.Background(), &plugin.SearchBasicCond{}); err == nil {
		t.Error("a plugin without settings answered")
	}
}

func TestARealAskalikeAnswersTheAskForm(t *testing.T) {
	address, ctx := started(t), context.Background()
	made := &site{}
	for n := 0; n < 250; n++ {
		id := fmt.Sprintf("1001%05d", n)
		made.questions = append(made.questions, content(id, "question", id, fmt.Sprintf("How do I set up printer number %d", n), "<p>It is new.</p>", 1))
	}
	made.questions = append(made.questions,
		content("2001", "question", "2001", "Wifi drops every evening", "<p>The router is near.</p>", 1),
		content("2002", "question", "2002", "Laptop battery swells", "<p>It is hot.</p>", 2),
		content("2003", "question", "2003", "Wifi drops in secret", "<p>Deleted.</p>", 10),
		content("2004", "question", "2004", "Wifi drops under review", "<p>Pending.</p>", 11))
	made.answers = append(made.answers, content("3001", "answer", "2001", "Wifi drops every evening", "<p>Change the channel.</p>", 1),
		content("3002", "answer", "2003", "", "<p>Of a question that is gone.</p>", 1))
	search := &Search{}
	configured(t, search.ConfigReceiver, client.Settings{Address: address})
	search.RegisterSyncer(ctx, made)
	settled(t, search.Writer())

	form := &plugin.SearchBasicCond{Words: []string{"my wifi drops each evening"}, Page: 1, PageSize: 10}
	found, total, err := search.SearchQuestions(ctx, form)
	if err != nil || total < 1 || found[0] != (plugin.SearchResult{ID: "2001", Type: "question"}) {
		t.Fatal(found, total, err)
	}
	for _, one := range found {
		if one.ID == "2003" || one.ID == "2004" {
			t.Error("what not everybody may read was found:", one)
		}
	}
	answers, _, err := search.SearchAnswers(ctx, &plugin.SearchBasicCond{QuestionID: "2001", VoteAmount: -1})
	if err != nil || len(answers) != 1 || answers[0].ID != "3001" {
		t.Error(answers, err)
	}
	tagged, total, err := search.SearchContents(ctx, &plugin.SearchBasicCond{TagIDs: [][]string{{"7"}}, Page: 3, PageSize: 100, Order: plugin.SearchNewestOrder})
	if err != nil || total != 252 || len(tagged) != 52 {
		t.Error(len(tagged), total, err)
	}

	if err := search.UpdateContent(ctx, content("4001", "question", "4001", "Screen flickers at 60 Hz", "*Always*.", 1)); err != nil {
		t.Fatal(err)
	}
	_ = search.UpdateContent(ctx, content("4002", "answer", "4001", "", "Try **75 Hz**.", 1))
	_ = search.UpdateContent(ctx, content("2001", "question", "2001", "Wifi drops every evening", "", 10))
	_ = search.DeleteContent(ctx, "2002")
	settled(t, search.Writer())
	for words, wanted := range map[string]string{"screen flickers": "4001", "wifi drops every evening": "", "laptop battery swells": ""} {
		found, _, err = search.SearchQuestions(ctx, &plugin.SearchBasicCond{Words: []string{words}, Page: 1, PageSize: 10})
		first := ""
		if len(found) > 0 {
			first = found[0].ID
		}
		if err != nil || first != wanted {
			t.Error(words, found, err)
		}
	}

	similar := &vector.Search{}
	configured(t, similar.ConfigReceiver, client.Settings{Address: address})
	question := &plugin.VectorSearchContent{ObjectID: "5001", ObjectType: "question", Title: "Fan noise at night",
		Content: "Question: Fan noise at night\nIt hums.\n\nAnswer: Clean it.\n\nComment: Thanks.", Metadata: `{"question_id": "5001"}`}
	answer := &plugin.VectorSearchContent{ObjectID: "5002", ObjectType: "answer", Title: question.Title,
		Content:  "Question: Fan noise at night\n\nAnswer: Clean it.\n\nComment: Thanks.",
		Metadata: `{"question_id": "5001", "answer_id": "5002"}`}
	_, _ = similar.UpdateContent(ctx, question), similar.UpdateContent(ctx, answer)
	settled(t, similar.Writer())
	hits, err := similar.SearchSimilar(ctx, "fan noise", 3)
	if err != nil || len(hits) == 0 || hits[0].ObjectID != "5001" || hits[0].Score <= 0 || hits[0].Score > 1 ||
		hits[0].Metadata != `{"question_id":"5001","answers":[{"answer_id":"5002"}]}` {
		t.Error(hits, err)
	}
	stored, err := http.Get(address + "/v1/questions/5001")
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Body.Close()
	var told struct {
		Question struct{ Body string }
		Answers  []struct{ Body string }
	}
	if err := json.NewDecoder(stored.Body).Decode(&told); err != nil || told.Question.Body != "It hums." || told.Answers[0].Body != "Clean it." {
		t.Error(told, err)
	}
	configured(t, similar.ConfigReceiver, client.Settings{Address: address, IsReader: true})
	if err := similar.DeleteContent(ctx, "5001"); err != nil || similar.Writer() != nil {
		t.Error("a reader writes:", err)
	}
}
