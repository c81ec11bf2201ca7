package power

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// ID returns the short ID by which reports, records and pages name the card: its model and four hex digits of a hash of
// its UUID, such as "H200-3f2a". It is empty if the driver reports no UUID, as for a simulated card.
func (i Info) ID() string {
	if i.UUID == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(i.UUID))
	return fmt.Sprintf("%s-%x", i.model(), sum[:2])
}

// model returns the first word of the card's name with a digit: "A100" of "NVIDIA A100-SXM4-80GB".
func (i Info) model() string {
	apart := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	for word := range strings.FieldsFuncSeq(i.Name, apart) {
		if strings.ContainsAny(word, "0123456789") {
			return word
		}
	}
	return "GPU"
}

// MarshalJSON adds the ID. Records without an ID have the UUID from which the ID is computed.
func (i Info) MarshalJSON() ([]byte, error) {
	type fields Info // without this method
	return json.Marshal(struct {
		ID string `json:"id,omitempty"`
		fields
	}{i.ID(), fields(i)})
}

// UnmarshalJSON reads records with and without an ID. It ignores unknown fields, even for a strict decoder.
func (i *Info) UnmarshalJSON(data []byte) error {
	type fields Info // without this method
	return json.Unmarshal(data, (*fields)(i))
}
