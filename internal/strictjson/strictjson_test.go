package strictjson_test

import (
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/strictjson"
)

func TestMissing(t *testing.T) {
	type inner struct {
		Low  float64  `json:"low"`
		Note string   `json:"note,omitempty"`
		Next []*inner `json:"next,omitempty"`
	}
	type outer struct {
		Name  string `json:"name"`
		Inner inner  `json:"inner"`
	}
	for document, want := range map[string]string{
		`{"name":"a","inner":{"low":0}}`:                           "",
		`{"inner":{"low":1}}`:                                      "name",
		`{"name":null,"inner":{"low":1}}`:                          "name",
		`{"name":"a"}`:                                             "inner",
		`{"name":"a","inner":{}}`:                                  "inner.low",
		`{"name":"a","inner":{"low":1,"next":[{"low":1},{}]}}`:     "inner.next[1].low",
		`{"name":"a","inner":{"low":1,"next":[]},"more":"fields"}`: "",
	} {
		if got := strictjson.Missing([]byte(document), outer{}); got != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
}
