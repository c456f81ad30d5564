package selftest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// Pure is what makes the packages that it names deterministic.
type Pure struct {
	Packages []string
	// Standard are the packages of the standard library that they may import.
	Standard []string
	// Maps reports whether they may use maps, if they sort the result.
	Maps bool
}

// CheckPure complains about whatever could make two runs differ, or lets a
// package do input or output: imports that are not listed, goroutines,
// channels, maps or the order in which they are walked.
func CheckPure(t *Tree, pure Pure) (complaints []string) {
	for _, p := range t.Packages {
		if !anyMatches(pure.Packages, p.Path) {
			continue
		}
		for _, f := range p.sources() {
			complaints = append(complaints, t.impureImports(f, pure.Standard)...)
			complaints = append(complaints, t.concurrency(f)...)
			if !pure.Maps {
				complaints = append(complaints, t.mapState(f)...)
			}
		}
		if pure.Maps {
			complaints = append(complaints, t.mapOrder(p)...)
		}
	}
	return complaints
}

func (t *Tree) impureImports(f *File, allowed []string) (complaints []string) {
	for _, spec := range f.Syntax.Imports {
		if name := unquote(spec.Path.Value); isStandard(name) && !slices.Contains(allowed, name) {
			complaints = append(complaints, t.complaint(spec, "a deterministic package may not import %s", name))
		}
	}
	return complaints
}

func (t *Tree) concurrency(f *File) (complaints []string) {
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "start a goroutine"
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			what = "use a channel"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "use a channel"
			}
		}
		if what != "" {
			complaints = append(complaints, t.complaint(n, "a deterministic package may not %s", what))
		}
		return true
	})
	return complaints
}

// mapState complains about maps that outlive a function: fields, named types
// and package variables.
func (t *Tree) mapState(f *File) (complaints []string) {
	for _, decl := range f.Syntax.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if _, ok := n.(*ast.MapType); ok {
				complaints = append(complaints, t.complaint(n, "state may not be a map; use an array, a bitset or a short slice"))
			}
			return true
		})
	}
	return complaints
}

// mapOrder complains about walks over a map whose order can show. It goes by
// names: a field of a type of this package that is a map, or a variable of the
// same function. A walk is harmless if the function sorts afterwards, or if all
// it does is count, add up and delete.
func (t *Tree) mapOrder(p *Package) (complaints []string) {
	fields := mapFields(p)
	for _, f := range p.sources() {
		for _, decl := range f.Syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			variables := mapVariables(fn)
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				walk, ok := n.(*ast.RangeStmt)
				if ok && walksMap(walk.X, fields, variables) && !sortsAfter(fn.Body, walk.End()) && !commutes(walk.Body) {
					complaints = append(complaints, t.complaint(walk, "the order of a map shows; walk its sorted keys"))
				}
				return true
			})
		}
	}
	return complaints
}

// mapFields are the names of fields of type map.
func mapFields(p *Package) map[string]bool {
	names := make(map[string]bool)
	for _, f := range p.sources() {
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					addNames(names, field.Names, field.Type)
				}
			}
			return true
		})
	}
	return names
}

// mapVariables are the names of parameters and variables of type map.
func mapVariables(fn *ast.FuncDecl) map[string]bool {
	names := make(map[string]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			for _, param := range n.Params.List {
				addNames(names, param.Names, param.Type)
			}
		case *ast.ValueSpec:
			addNames(names, n.Names, append(n.Values, n.Type)...)
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if name, ok := n.Lhs[i].(*ast.Ident); ok {
					addNames(names, []*ast.Ident{name}, value)
				}
			}
		}
		return true
	})
	return names
}

func addNames(names map[string]bool, idents []*ast.Ident, by ...ast.Expr) {
	if slices.ContainsFunc(by, isMap) {
		for _, ident := range idents {
			names[ident.Name] = true
		}
	}
}

// isMap reports whether an expression is a map type, a literal of one, or makes
// or clones a map.
func isMap(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.MapType:
		return true
	case *ast.CompositeLit:
		return isMap(e.Type)
	case *ast.CallExpr:
		return callee(e) == "maps.Clone" || callee(e) == "make" && isMap(e.Args[0])
	}
	return false
}

func walksMap(e ast.Expr, fields, variables map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return variables[e.Name]
	case *ast.SelectorExpr:
		return fields[e.Sel.Name]
	case *ast.CallExpr:
		return slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, callee(e))
	}
	return isMap(e)
}

// callee names a called function as it is written, "f" or "pkg.f".
func callee(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
		return "." + fun.Sel.Name
	}
	return ""
}

func sortsAfter(body *ast.BlockStmt, pos token.Pos) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && call.Pos() > pos {
			found = found || strings.HasPrefix(callee(call), "slices.Sort") || strings.HasPrefix(callee(call), "sort.")
		}
		return true
	})
	return found
}

// commutes reports whether a body does the same in every order: it counts, adds
// up and deletes.
func commutes(body ast.Stmt) bool {
	switch s := body.(type) {
	case *ast.BlockStmt:
		return !slices.ContainsFunc(s.List, func(s ast.Stmt) bool { return !commutes(s) })
	case *ast.IfStmt:
		return s.Init == nil && commutes(s.Body) && (s.Else == nil || commutes(s.Else))
	case *ast.IncDecStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok == token.ADD_ASSIGN || s.Tok == token.SUB_ASSIGN || s.Tok == token.OR_ASSIGN
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && callee(call) == "delete"
	}
	return false
}
