package sweep

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/lock"
)

const busy = "another sweep is running on this card"

// LockCard prevents other sweeps of a card, which would mistake its present limit for the original. card is the card's
// UUID, or any text for a simulated card. Closing the returned file ends the lock, unless a watchdog inherited the
// file.
func LockCard(card string) (*os.File, error) { return lock.Temporary(lockName(card), busy) }

// CheckCard returns an error if a sweep of the card is running. It writes nothing.
func CheckCard(card string) error { return lock.CheckTemporary(lockName(card), busy) }

func lockName(card string) string {
	if strings.ContainsAny(card, `:/\`) {
		card = fmt.Sprintf("%x", sha256.Sum256([]byte(card)))
	}
	return "sweep-" + card
}
