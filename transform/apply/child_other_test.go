//go:build !unix

package apply_test

func limitChild(string) error { return nil }
