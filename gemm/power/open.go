package power

import "errors"

// What Open fails with, wrapped in what to do about it.
var (
	// ErrNoNVML means that NVIDIA's management library cannot be used.
	ErrNoNVML = errors.New("no NVML")
	// ErrNoCGO means that this build cannot use it anywhere.
	ErrNoCGO = errors.New("no NVML in this build (built without cgo)")
	// ErrNoCard means that there is no such card, or that it may not be read.
	ErrNoCard = errors.New("no such card")
	// ErrMIG means a slice of a card. The energy counter belongs to the whole card.
	ErrMIG = errors.New("the energy of a MIG slice cannot be told from its neighbours': measure on a whole card")
)

// ErrNotPermitted is what a [Governor] fails with where this process may not change settings.
var ErrNotPermitted = errors.New("no permission to change the card's settings: run as root, in a container with the capability SYS_ADMIN (docker run --cap-add SYS_ADMIN)")
