package client

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"
)

const (
	pageSize    = 100
	mostWaiting = 10_000
	longestRest = time.Minute
)

// Pages returns a page of what a site holds, counted from 1; an empty one is behind the last.
type Pages func(ctx context.Context, page, size int) ([]Content, error)

// Writer sends what changes, one after the other, while the site goes on: a change that cannot be sent is sent again
// until it can. What waits is lost when the site ends; to save the plugin's settings compares everything.
type Writer struct {
	client  *Client
	writing sync.Mutex // held from reading a page until it is written, so that an older state never follows a newer

	mutex   sync.Mutex
	latest  map[string]Content
	order   []string
	isBusy  bool
	wake    chan struct{}
	stop    context.CancelFunc
	endSync context.CancelFunc
	synced  sync.WaitGroup
	rest    func(ctx context.Context, d time.Duration)
}

// NewWriter returns a writer that sends until Close.
func NewWriter(client *Client) *Writer {
	ctx, stop := context.WithCancel(context.Background())
	w := &Writer{client: client, latest: map[string]Content{}, wake: make(chan struct{}, 1), stop: stop, rest: rest}
	go w.run(ctx)
	return w
}

// Close ends the sending.
func (w *Writer) Close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.stop()
	if w.endSync != nil {
		w.endSync()
	}
}

// Put asks for a content to be sent; of several states of one, the last is.
func (w *Writer) Put(content Content) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, isKnown := w.latest[content.ID]; !isKnown {
		if len(w.order) >= mostWaiting {
			return fmt.Errorf("%d changes wait for askalike: save the plugin's settings when it answers", mostWaiting)
		}
		w.order = append(w.order, content.ID)
	}
	w.latest[content.ID] = content
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// Settle waits until nothing is left to send.
func (w *Writer) Settle(ctx context.Context) error {
	w.synced.Wait()
	for {
		w.mutex.Lock()
		isDone := len(w.order) == 0 && !w.isBusy
		w.mutex.Unlock()
		if isDone || ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *Writer) take() (Content, bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isBusy = len(w.order) > 0
	if !w.isBusy {
		return Content{}, false
	}
	one := w.latest[w.order[0]]
	delete(w.latest, one.ID)
	w.order = w.order[1:]
	return one, true
}

func (w *Writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if one, isThere := w.take(); isThere {
			w.again(ctx, "content "+one.ID, func() error {
				w.writing.Lock()
				defer w.writing.Unlock()
				return w.client.Write(ctx, one)
			})
			continue
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
}

// again does something until it succeeds, or is refused for good; it returns whether it succeeded.
func (w *Writer) again(ctx context.Context, what string, try func() error) bool {
	for pause := time.Second; ; pause *= 2 {
		err := try()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if isLasting(err) {
			log.Printf("askalike: %s is left out: %v", what, err)
			return false
		}
		if pause == time.Second {
			log.Printf("askalike: %s is sent again until it is stored: %v", what, err)
		}
		if pause > longestRest {
			pause = longestRest
		}
		wait := pause
		var refusal *StatusError
		if errors.As(err, &refusal) && refusal.Wait > wait {
			wait = refusal.Wait
		}
		w.rest(ctx, wait)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Sync sends everything that a site holds, in the background; one that is under way ends.
func (w *Writer) Sync(questions, answers Pages) {
	ctx, end := context.WithCancel(context.Background())
	w.mutex.Lock()
	if w.endSync != nil {
		w.endSync()
	}
	w.endSync = end
	w.mutex.Unlock()
	w.synced.Add(1)
	go func() {
		defer w.synced.Done()
		defer end()
		many, isWhole := 0, true
		for _, pages := range []Pages{questions, answers} {
			for page := 1; ctx.Err() == nil; page++ {
				sent := -1
				w.again(ctx, fmt.Sprintf("page %d", page), func() (err error) {
					sent, err = w.page(ctx, pages, page)
					return err
				})
				if sent < 0 {
					isWhole = false
					break
				}
				if sent == 0 {
					break
				}
				many += sent
			}
		}
		log.Printf("askalike: compared %d questions and answers (whole: %t)", many, isWhole && ctx.Err() == nil)
	}()
}

// page reads a page and sends it; it returns how many contents it had.
func (w *Writer) page(ctx context.Context, pages Pages, number int) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	found, err := pages(ctx, number, pageSize)
	if err != nil {
		return -1, fmt.Errorf("the site's page cannot be read: %w", err)
	}
	var questions, others []Content
	for _, one := range found {
		if one.IsAnswer || one.IsGone {
			others = append(others, one)
		} else {
			questions = append(questions, one)
		}
	}
	if len(questions) > 0 {
		refused, err := w.client.writeAll(ctx, questions)
		if err != nil {
			return -1, err
		}
		others = append(others, refused...)
	}
	for _, one := range others {
		if err := w.client.Write(ctx, one); isLasting(err) {
			log.Printf("askalike: content %s is left out: %v", one.ID, err)
		} else if err != nil {
			return -1, err
		}
	}
	return len(found), nil
}
