// Command zerocalls calls exported functions and methods with nil and zero arguments, and prints a line for each that panics or does
// not return: its name, a tab, and what happened. The table of functions is generated: see zerocalls_test.go.
package main

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// patience is how long a call may take; none with zero values does any work.
const patience = 20 * time.Second

// function is an exported function under its name, such as weights.Open.
type function struct {
	name string
	fn   any
}

// method is an exported method of a type, under its name, such as weights.Model.Each.
type method struct {
	name     string
	receiver reflect.Type // a pointer to the type
	method   string
	literal  bool // the caller can make a useful value of the type without a constructor: it has exported fields, or is no struct
}

func main() {
	specimens, done, err := makeSpecimens()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, f := range functions {
		tryAll(f.name, reflect.ValueOf(f.fn), specimens)
	}
	slices.SortStableFunc(methods, func(a, b method) int { return cmp.Compare(closes(a), closes(b)) })
	for _, m := range methods {
		var receivers []reflect.Value
		if s, ok := specimens[m.receiver]; ok {
			receivers = append(receivers, s)
		} else if s, ok := specimens[m.receiver.Elem()]; ok {
			pointer := reflect.New(m.receiver.Elem())
			pointer.Elem().Set(s)
			receivers = append(receivers, pointer)
		}
		if m.literal {
			receivers = append(receivers, reflect.New(m.receiver.Elem()))
		}
		for _, r := range receivers {
			tryAll(m.name, r.MethodByName(m.method), specimens)
		}
	}
	done()
}

// closes is 1 for methods after which a receiver is of no more use.
func closes(m method) int {
	if m.method == "Close" {
		return 1
	}
	return 0
}

// tryAll calls a function with zero arguments, and with each argument zero while the others are specimens.
func tryAll(name string, fn reflect.Value, specimens map[reflect.Type]reflect.Value) {
	t := fn.Type()
	zeros, good := make([]reflect.Value, t.NumIn()), make([]reflect.Value, t.NumIn())
	for i := range zeros {
		in := t.In(i)
		zeros[i] = reflect.Zero(in)
		if in == contextType { // a nil context is tried apart from the others
			zeros[i] = specimens[in]
		}
		good[i] = zeros[i]
		if s, ok := specimens[in]; ok {
			good[i] = s
		} else if in.Kind() == reflect.Pointer && literal(in.Elem()) {
			good[i] = reflect.New(in.Elem())
		}
	}
	if try(name, fn, zeros) {
		return
	}
	if len(good) > 0 && t.In(0) == contextType {
		for _, args := range [][]reflect.Value{zeros, good} {
			args = append([]reflect.Value(nil), args...)
			args[0] = reflect.Zero(contextType)
			if try(name, fn, args) {
				return
			}
		}
	}
	for i := range good {
		if in := t.In(i); in == contextType || in.Kind() == reflect.Struct && in.NumField() == 0 {
			continue
		}
		args := append([]reflect.Value(nil), good...)
		args[i] = zeros[i]
		if try(name, fn, args) {
			return
		}
	}
}

// literal reports whether a type has a value that a caller makes without a constructor.
func literal(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return true
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return true
		}
	}
	return false
}

// try calls a function and reports whether it panicked or did not return.
func try(name string, fn reflect.Value, args []reflect.Value) (failed bool) {
	fmt.Fprintln(os.Stderr, name) // the last name is to blame if the process dies
	result := make(chan string, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				result <- fmt.Sprintf("panics with (%s): %v; %s", describe(args), v, origin(debug.Stack()))
			}
		}()
		call := fn.Call
		if fn.Type().IsVariadic() {
			call = fn.CallSlice
		}
		for _, r := range call(args) {
			use(r)
		}
		result <- ""
	}()
	select {
	case text := <-result:
		if text != "" {
			fmt.Printf("%s\t%s\n", name, strings.ReplaceAll(text, "\n", " "))
		}
		return text != ""
	case <-time.After(patience):
		fmt.Printf("%s\tdoes not return with (%s)\n", name, describe(args))
		return true
	}
}

// use takes the first element of a sequence, and an error's text.
func use(r reflect.Value) {
	switch {
	case r.Kind() == reflect.Func && !r.IsNil() && r.Type().CanSeq():
		for range r.Seq() {
			break
		}
	case r.Kind() == reflect.Func && !r.IsNil() && r.Type().CanSeq2():
		for range r.Seq2() {
			break
		}
	case r.Kind() == reflect.Interface && !r.IsNil():
		if err, ok := r.Interface().(error); ok {
			_ = err.Error()
		}
	}
}

func describe(args []reflect.Value) string {
	var words []string
	for _, a := range args {
		if a.IsZero() {
			words = append(words, "zero "+a.Type().String())
		} else {
			words = append(words, a.Type().String())
		}
	}
	return strings.Join(words, ", ")
}

// origin is the first line of this module in a panic's stack.
func origin(stack []byte) string {
	_, after, _ := strings.Cut(string(stack), "\npanic(")
	for line := range strings.SplitSeq(after, "\n") {
		if line = strings.TrimSpace(line); strings.Contains(line, "lowtoggle/") && strings.Contains(line, ".go:") {
			line, _, _ = strings.Cut(line, " +")
			_, line, _ = strings.Cut(line, "lowtoggle/")
			return line
		}
	}
	return ""
}
