// Package selftest tests the repository itself: which package may import which, what the
// deterministic packages may not do, how long a function and how large a package may be, which words and habits
// are not allowed, whether comments name promises that are listed, and whether the
// documents are right about files and commands.
//
// Every check is a function from a Tree to complaints. Each complaint is one line with
// the file and line, what is wrong, and what is expected. The checks themselves are
// tested on small trees with one fault each, so that a check that finds nothing any more
// is noticed.
package selftest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// module is the path of the module, the import path of the root package.
const module = "github.com/conclave-io/conclave"

// A Tree is the source of a module: every package, as "go list ./..." would
// name them, but with the files of all systems.
type Tree struct {
	Packages []*Package
	// Texts are the files that people read, Go files included.
	Texts []Text

	fsys fs.FS
	fset *token.FileSet
}

// A Package is what one directory holds.
type Package struct {
	// Path is the directory, relative to the module, "." for the root.
	Path  string
	Files []*File
}

// A File is one Go file.
type File struct {
	Name      string
	Syntax    *ast.File
	Test      bool
	Generated bool
	Lines     int
}

// A Text is one file as it stands.
type Text struct {
	Name    string
	Content string
}

// textual are the endings of the files that are read as texts.
var textual = []string{".go", ".md", ".proto", ".yaml", ".yml", ".toml", ".json", ".txt", ".txtar", ".sh", ".mod", "Makefile", ".ci/run"}

// Load reads the tree in fsys. Like the go command it leaves out testdata,
// directories that begin with a dot or an underscore, modules within, and what npm
// installed.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys, fset: token.NewFileSet()}
	return t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && t.outside(name):
			return fs.SkipDir
		case d.IsDir() || !isTextual(name):
			return nil
		}
		return t.add(name)
	})
}

func (t *Tree) outside(dir string) bool {
	base := path.Base(dir)
	if dir == "." || base == ".ci" {
		return false
	}
	_, err := fs.Stat(t.fsys, path.Join(dir, "go.mod"))
	return err == nil || base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func isTextual(name string) bool {
	return slices.ContainsFunc(textual, func(end string) bool { return strings.HasSuffix(name, end) })
}

func (t *Tree) add(name string) error {
	content, err := fs.ReadFile(t.fsys, name)
	if err != nil {
		return err
	}
	t.Texts = append(t.Texts, Text{name, string(content)})
	if !strings.HasSuffix(name, ".go") {
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p := t.at(path.Dir(name))
	p.Files = append(p.Files, &File{
		Name: name, Syntax: syntax, Test: strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(syntax), Lines: strings.Count(string(content), "\n"),
	})
	return nil
}

// at returns the package of a directory. The walk is in lexical order but not
// depth first for files, so the package may be an earlier one.
func (t *Tree) at(dir string) *Package {
	for _, p := range t.Packages {
		if p.Path == dir {
			return p
		}
	}
	p := &Package{Path: dir}
	t.Packages = append(t.Packages, p)
	return p
}

// complaint begins a line with the file and line of a node.
func (t *Tree) complaint(at ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s: %s", t.fset.Position(at.Pos()), fmt.Sprintf(format, args...))
}

// sources are the files that are built, without tests.
func (p *Package) sources() []*File {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f *File) bool { return f.Test })
}

func (p *Package) tests() []*File {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f *File) bool { return !f.Test })
}

// matches reports whether a path is what a pattern names: itself, or with
// "..." at the end everything that begins with what stands before.
func matches(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "...")
	return pattern == name || open && strings.HasPrefix(name, prefix)
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}
