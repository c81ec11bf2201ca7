package power

import "errors"

// Errors of Open. They are wrapped with advice.
var (
	// ErrNoNVML means that NVIDIA's management library cannot be used.
	ErrNoNVML = errors.New("no NVML")
	// ErrNoCGO means that this build cannot use NVML.
	ErrNoCGO = errors.New("no NVML in this build (built without cgo)")
	// ErrNoCard means that there is no such card, or no permission to read it.
	ErrNoCard = errors.New("no such card")
	// ErrMIG is the error for a slice of a card, because the energy counter counts the whole card.
	ErrMIG = errors.New("the energy counter counts the whole card, not a MIG slice: measure on a whole card")
)

// ErrNotPermitted means that this process may not change settings of the card.
var ErrNotPermitted = errors.New("no permission to change the card's settings: run as root, in a container with the capability SYS_ADMIN (docker run --cap-add SYS_ADMIN)")
