//go:build !unix

package weights

import "errors"

func reserveAddresses(int) ([]byte, error) {
	return nil, errors.New("models in object stores are read on Unix systems only: copy the model to a disk")
}

func commit([]byte) error   { return errors.ErrUnsupported }
func readOnly([]byte) error { return errors.ErrUnsupported }
func decommit([]byte) error { return errors.ErrUnsupported }
