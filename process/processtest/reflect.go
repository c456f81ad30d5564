package processtest

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// differs compares two machines field by field, also those that Fields does not
// name, and returns the path of the first difference. Fields whose name begins
// with "scratch" hold nothing between steps.
func differs(a, b process.Machine) string {
	return differ(reflect.ValueOf(a), reflect.ValueOf(b), "")
}

func differ(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return unless(a.IsNil() == b.IsNil(), path)
		}
		return differ(a.Elem(), b.Elem(), path)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() || a.Pointer() == b.Pointer() {
			return unless(a.IsNil() == b.IsNil(), path)
		}
		return differ(a.Elem(), b.Elem(), path)
	case reflect.Struct:
		for i := range a.NumField() {
			name := a.Type().Field(i).Name
			if strings.HasPrefix(name, "scratch") {
				continue
			}
			if d := differ(a.Field(i), b.Field(i), path+"."+name); d != "" {
				return d
			}
		}
		return ""
	case reflect.Slice, reflect.Array:
		return differElements(a, b, path)
	case reflect.Map, reflect.Chan, reflect.Func, reflect.Float32, reflect.Float64:
		return path + " (of a type that no state may have: " + a.Kind().String() + ")"
	default:
		return unless(a.Equal(b), path)
	}
}

// differElements takes an empty slice for equal to a nil one.
func differElements(a, b reflect.Value, path string) string {
	if a.Len() != b.Len() {
		return path
	}
	for i := range a.Len() {
		if d := differ(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i)); d != "" {
			return d
		}
	}
	return ""
}

func unless(equal bool, path string) string {
	if equal {
		return ""
	}
	return path
}

// misplaced checks the order in a machine's struct: configuration first, then state. From
// the first field that Fields names, every field must be named, or be a struct whose
// fields are all named.
func misplaced(m process.Machine, c *process.Config) error {
	if stack, ok := m.(*process.Stack); ok {
		for i := range stack.Depth() {
			if err := misplaced(stack.Layer(i), c); err != nil {
				return err
			}
		}
		return nil
	}
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("machine is a %s: must be a pointer to a struct", v.Type())
	}
	named := map[uintptr]bool{}
	for _, view := range process.View(m, c) {
		if p := reflect.ValueOf(view.Pointer); p.Kind() == reflect.Pointer || p.Len() > 0 {
			named[p.Pointer()] = true
		}
	}
	return inOrder(v.Elem(), named)
}

// inOrder checks that no field behind the first one that is named is not.
func inOrder(machine reflect.Value, named map[uintptr]bool) error {
	state := false
	for i := range machine.NumField() {
		name := machine.Type().Field(i).Name
		covered := covers(named, machine.Field(i))
		if state && !covered && !strings.HasPrefix(name, "scratch") {
			return fmt.Errorf("field %s stands behind the first piece of state, but Fields does not name it", name)
		}
		state = state || covered
	}
	return nil
}

// covers reports whether Fields names the field, or each of its parts.
func covers(named map[uintptr]bool, field reflect.Value) bool {
	address := field.Addr().Pointer()
	switch field.Kind() {
	case reflect.Slice:
		return named[address] || field.Len() > 0 && named[field.Pointer()]
	case reflect.Struct:
		if isWhole(field.Type()) {
			return named[address]
		}
		for i := range field.NumField() {
			if !covers(named, field.Field(i)) {
				return false
			}
		}
		return field.NumField() > 0
	default:
		return named[address]
	}
}

// isWhole reports whether Fields has a method for this struct as a whole.
func isWhole(t reflect.Type) bool {
	return t == reflect.TypeFor[process.Stamp]() || t == reflect.TypeFor[process.Message]()
}
