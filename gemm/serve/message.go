package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Extras are request fields that not every server accepts.
type Extras struct {
	Usage     bool `json:"usage,omitempty"`      // stream_options.include_usage
	IgnoreEOS bool `json:"ignore_eos,omitempty"` // answers do not end early
	MinTokens bool `json:"min_tokens,omitempty"` // answers do not end early, by another field
}

// attempts lists the sets of extras to try with a server, in order.
var attempts = []Extras{
	{Usage: true, IgnoreEOS: true, MinTokens: true},
	{Usage: true, IgnoreEOS: true},
	{Usage: true},
	{},
}

// request is one completion.
type request struct {
	prompt Prompt
	tokens int // of the answer
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content Prompt `json:"content"`
}

// body writes a request for a server.
func (s *endpoint) body(q request) ([]byte, error) {
	m := struct {
		Model         string         `json:"model"`
		Prompt        *Prompt        `json:"prompt,omitempty"`
		Messages      []chatMessage  `json:"messages,omitempty"`
		MaxTokens     int            `json:"max_tokens"`
		MinTokens     int            `json:"min_tokens,omitempty"`
		Temperature   float64        `json:"temperature"`
		Stream        bool           `json:"stream"`
		StreamOptions *streamOptions `json:"stream_options,omitempty"`
		IgnoreEOS     bool           `json:"ignore_eos,omitempty"`
	}{Model: s.model, MaxTokens: q.tokens, Stream: true, IgnoreEOS: s.extras.IgnoreEOS}
	if s.chat {
		m.Messages = []chatMessage{{"user", q.prompt}}
	} else {
		m.Prompt = &q.prompt
	}
	if s.extras.MinTokens {
		m.MinTokens = q.tokens
	}
	if s.extras.Usage {
		m.StreamOptions = &streamOptions{true}
	}
	return json.Marshal(m)
}

// chunk is an event of a streamed answer.
type chunk struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt int `json:"prompt_tokens"`
		Output int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
	// Object and Message are fields of another format of errors.
	Object  string `json:"object"`
	Message string `json:"message"`
}

// parseChunk reads an event's data. It fails for an event that reports an error.
func parseChunk(data []byte) (c chunk, err error) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("an event is not the JSON of a completion (%w): %s: look at the server's log", err, quoted(data))
	}
	switch {
	case len(c.Error) > 0 && string(c.Error) != "null":
		return c, fmt.Errorf("the server reports an error: %s", quoted(errorText(data)))
	case c.Object == "error":
		return c, fmt.Errorf("the server reports an error: %s", quoted([]byte(c.Message)))
	}
	return c, nil
}

// text reports whether an event contains part of the answer.
func (c *chunk) text() bool {
	for _, choice := range c.Choices {
		if choice.Text != "" || choice.Delta.Content != "" || choice.Delta.Reasoning != "" {
			return true
		}
	}
	return false
}

// finish returns the reason for the answer's end; empty before the end.
func (c *chunk) finish() string {
	for _, choice := range c.Choices {
		if choice.Finish != "" {
			return choice.Finish
		}
	}
	return ""
}

// errorText finds the message in a JSON error, or returns all of it.
func errorText(body []byte) []byte {
	var object struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &object) != nil {
		return body
	}
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	switch {
	case object.Message != "":
		return []byte(object.Message)
	case json.Unmarshal(object.Error, &inner) == nil && inner.Message != "":
		return []byte(inner.Message)
	case json.Unmarshal(object.Error, &plain) == nil && plain != "":
		return []byte(plain)
	case len(object.Detail) > 0:
		return object.Detail
	}
	return body
}

// quoted returns the beginning of a server's answer, made safe for a terminal.
func quoted(data []byte) string {
	const most = 200
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, string(bytes.ToValidUTF8(data[:min(len(data), 4*most)], []byte("�"))))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if text == "" {
		return "(nothing)"
	}
	return text
}
