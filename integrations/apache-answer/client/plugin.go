package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Plugin is what both plugins share: settings, and a client and a writer by them.
type Plugin struct {
	mutex    sync.Mutex
	settings Settings
	client   *Client
	writer   *Writer
}

// Configure takes the settings of the plugin's form.
func (p *Plugin) Configure(content []byte) error {
	var given Settings
	if err := json.Unmarshal(content, &given); err != nil {
		return fmt.Errorf("the settings cannot be read: %w", err)
	}
	made, err := New(given)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.writer != nil {
		p.writer.Close()
	}
	p.settings, p.client, p.writer = given, made, NewWriter(made)
	return nil
}

// Settings returns what was taken last.
func (p *Plugin) Settings() Settings {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.settings
}

// Client returns what searches.
func (p *Plugin) Client() (*Client, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.client == nil {
		return nil, errors.New("askalike is not set up: give its address in the plugin's settings")
	}
	return p.client, nil
}

// Writer returns what writes, nil where nothing is to be written.
func (p *Plugin) Writer() *Writer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.settings.IsReader {
		return nil
	}
	return p.writer
}

// Put sends a content soon; whoever saves a question in the site does not wait for it.
func (p *Plugin) Put(content Content) error {
	if writer := p.Writer(); writer != nil {
		return writer.Put(content)
	}
	return nil
}
