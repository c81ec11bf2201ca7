package power

import "errors"

// Errors of Open. Open wraps them with advice.
var (
	// ErrNoNVML means that NVIDIA's management library cannot be used.
	ErrNoNVML = errors.New("NVML cannot be used")
	// ErrNoCGO means that this build cannot use NVML.
	ErrNoCGO = errors.New("this build cannot use NVML: build lowtoggle on Linux with CGO_ENABLED=1 and without -tags nogpu")
	// ErrNoCard means that the card does not exist or that this process may not read it.
	ErrNoCard = errors.New("no such card")
	// ErrMIG is the error for a MIG slice of a card, because the energy counter counts the whole card.
	ErrMIG = errors.New("the energy counter counts the whole card, not a MIG slice: measure on a whole card")
)

// ErrNotPermitted means that this process has no permission to change the card's settings.
var ErrNotPermitted = errors.New("no permission to change the card's settings: run as root; a container also needs the capability SYS_ADMIN (docker run --cap-add SYS_ADMIN)")
