// Command protogen compiles the .proto files named on its command line and
// hands them to the plugins that the main module pins with its tool lines, so
// that generating code needs no protoc on the machine.
//
//	go run -C internal/gen/tools ./protogen api/conclave.proto
//
// Paths are relative to the repository, in which the output is written beside
// each input. With -check nothing is written: it fails if a file is not what
// would be written.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const repository = "../../.."

var plugins = []string{"protoc-gen-go", "protoc-gen-go-grpc"}

// output is what becomes of a generated file.
type output func(name string, content []byte) error

func main() {
	check := flag.Bool("check", false, "write nothing, fail if a file is not what would be written")
	flag.Parse()
	done := write
	if *check {
		done = compare
	}
	for _, file := range flag.Args() {
		if err := generate(file, done); err != nil {
			fmt.Fprintf(os.Stderr, "protogen: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func write(name string, content []byte) error {
	return os.WriteFile(name, content, 0o644)
}

func compare(name string, content []byte) error {
	present, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.Equal(present, content) {
		return fmt.Errorf("%s is not what would be generated; run make generate", name)
	}
	return nil
}

func generate(file string, done output) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{repository}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])},
	})
	if err != nil {
		return err
	}
	for _, plugin := range plugins {
		if err := run(plugin, request, done); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func run(plugin string, request []byte, done output) error {
	cmd := exec.Command("go", "tool", plugin)
	cmd.Dir = repository
	cmd.Stdin = bytes.NewReader(request)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		name := filepath.Join(repository, f.GetName())
		if err := done(name, []byte(f.GetContent())); err != nil {
			return err
		}
	}
	return nil
}
