package selftest

import (
	"go/ast"
	"maps"
	"slices"
)

const (
	// maxFiles is how many Go files a package may have, tests and generated code left out.
	maxFiles = 25
	// maxMethods is how many methods a type may have.
	maxMethods = 60
)

// A Shape is how many files a package has, and how many methods its largest type.
type Shape struct{ Files, Methods int }

// CheckShape complains about packages that have more files, and types that have more methods, than
// allowed. The exceptions name the packages that may have more, and how much more: they may shrink,
// and an exception that is no longer needed is a complaint too.
func CheckShape(t *Tree, exceptions map[string]Shape) []string {
	var complaints []string
	unused := maps.Clone(exceptions)
	for _, p := range t.Packages {
		shape, first, largest := shapeOf(p)
		if shape.Files > maxFiles || shape.Methods > maxMethods {
			delete(unused, p.Path)
		}
		exception := exceptions[p.Path]
		if most := max(maxFiles, exception.Files); shape.Files > most {
			complaints = append(complaints, t.complaint(first, "package %s has %d files: at most %d are allowed; split it by subject", p.Path, shape.Files, most))
		}
		if most := max(maxMethods, exception.Methods); shape.Methods > most {
			complaints = append(complaints, t.complaint(largest, "%s has %d methods: at most %d are allowed; split it by what its callers need", largest.Name, shape.Methods, most))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(unused)) {
		complaints = append(complaints, path+": needs no exception: remove it")
	}
	return complaints
}

// shapeOf returns the shape of a package, its name in its first file, and the type with the most methods.
func shapeOf(p *Package) (shape Shape, first, largest *ast.Ident) {
	methods := make(map[string]int)
	for _, f := range p.sources() {
		if f.Generated {
			continue
		}
		if shape.Files++; first == nil {
			first = f.Syntax.Name
		}
		for _, one := range methodsOf(f.Syntax) {
			if methods[one.Name]++; methods[one.Name] > shape.Methods {
				shape.Methods, largest = methods[one.Name], one
			}
		}
	}
	return shape, first, largest
}

// methodsOf returns the type of each method in a file.
func methodsOf(f *ast.File) (types []*ast.Ident) {
	for _, d := range f.Decls {
		if fn, is := d.(*ast.FuncDecl); is && fn.Recv != nil {
			types = append(types, typeName(fn.Recv.List[0].Type))
		}
	}
	return types
}

// typeName returns the name of the type of a receiver.
func typeName(receiver ast.Expr) *ast.Ident {
	switch x := receiver.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	}
	return receiver.(*ast.Ident) // nothing else is a receiver
}
