//go:build !unix

package apply

// mounted is not known on these systems.
func mounted(string) bool { return false }
