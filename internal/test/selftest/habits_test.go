package selftest

import "testing"

func TestComments(t *testing.T) { report(t, CheckComments(load(t))) }
func TestWords(t *testing.T)    { report(t, CheckWords(load(t))) }
func TestSleep(t *testing.T)    { report(t, CheckSleep(load(t))) }
func TestLeaks(t *testing.T)    { report(t, CheckLeaks(load(t))) }

func TestCommentsAreCounted(t *testing.T) {
	expect(t, CheckComments(small(t, map[string]string{
		"none/a.go":        "package none\n",
		"one/a.go":         "// Package one is fine.\npackage one\n",
		"one/b.go":         "//go:build linux\n\npackage one\n",
		"one/a_test.go":    "// Tests.\npackage one\n",
		"two/a.go":         "// Package two.\npackage two\n",
		"two/b.go":         "// Package two, again.\npackage two\n",
		"tests/a_test.go":  "// Package tests has tests alone.\npackage tests\n",
		"silent/a_test.go": "package silent\n",
	})), []string{
		"none: has 0 package comments",
		"silent: has 0 package comments",
		"two: has 2 package comments [two/a.go two/b.go]",
	})
}

func TestWordsAreFound(t *testing.T) {
	const slash = "/"
	expect(t, CheckWords(small(t, map[string]string{
		"a.go": "package a\n\n// TO" + "DO: more.\nvar hackney int\n",
		"b.md": "see PLA" + "N.md and README.md\n",
		"c.md": "cd " + slash + "home/ann/x; ls ./home/x, see http://x/root/y, `" + slash + "root/.x`, as is" +
			"sue 12 says\n",
		"README.md": "fine\n",
	})), []string{
		`a.go:3: "TO` + `DO"`,
		`b.md:1: "PLA` + `N.md": there is no such document`,
		`c.md:1: "` + slash + `home/ann/": name no directory`,
		`c.md:1: "is` + `sue 12": say what`,
	})
}

func TestSleepIsFound(t *testing.T) {
	expect(t, CheckSleep(small(t, map[string]string{
		"a.go":        "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }\n",
		"a_test.go":   "package a\nimport \"time\"\nfunc g() { time.Sleep(1) }\n",
		"b/a_test.go": "package b\nimport _ \"testing/synctest\"\n",
		"b/b_test.go": "package b\nimport \"time\"\nfunc h() { time.Sleep(1) }\n",
		"c_test.go": "package a\nimport \"time\"\nfunc i() {\nfor !done() { if time.Now().After(end) { panic(end) }; time.Sleep(1) }\n" +
			"for !done() { time.Sleep(1) }\n}\n",
	})), []string{"a_test.go:3:12: a test sleeps", "c_test.go:5:15: a test sleeps"})
}

func TestUncheckedGoroutinesAreFound(t *testing.T) {
	const verified = "func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }\n"
	expect(t, CheckLeaks(small(t, map[string]string{
		"quiet/a.go":        "package quiet\n",
		"started/a.go":      "package started\nfunc f() { go f() }\n",
		"group/a.go":        "package group\nfunc f() { wg.Go(f) }\n",
		"group/a_test.go":   "package group\nimport _ \"go.uber.org/goleak\"\n",
		"checked/a.go":      "package checked\nfunc f() { go f() }\n",
		"checked/a_test.go": "package checked\n" + verified,
		"test/a_test.go":    "package test\nfunc f() { go f() }\n",
		"support/a.go":      "package support\nfunc f() { go f() }\n",
		"user/a_test.go":    "package user\nimport _ \"" + module + "/support\"\n",
		"user/b_test.go":    "package user\n" + verified,
		"unused/a.go":       "package unused\nfunc f() { go f() }\n",
	})), []string{
		"group/a.go:2:12: group starts goroutines",
		"started/a.go:2:12: started starts goroutines",
		"unused/a.go:2:12: unused starts goroutines",
	})
}
