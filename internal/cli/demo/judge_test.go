package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const ms = int64(time.Millisecond)

// verdict judges a file, given with times in milliseconds.
func verdict(t *testing.T, file string, kills ...kill) Report {
	t.Helper()
	records, err := readRecords(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		records[i].at *= ms
		records[i].waited *= ms
	}
	for i := range kills {
		kills[i].sent *= ms
		kills[i].reaped *= ms
	}
	return judge(records, kills)
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name, file string
		kills      []kill
		want       Report
	}{
		{
			name: "turns are taken",
			file: "1 1 enter 10 4\n1 1 leave 20 0\n2 2 enter 20 6\n2 2 leave 30 0\n",
			want: Report{Entries: 2, AcquireMSP50: 4, AcquireMSP99: 6},
		},
		{
			name: "a second one enters early",
			file: "1 1 enter 10 0\n2 2 enter 19 0\n1 1 leave 20 0\n2 2 leave 30 0\n",
			want: Report{Entries: 2, Overlaps: 1, FirstOverlap: "worker 1 was inside with fence 1 from 0.010 s to 0.020 s; worker 2 was inside with fence 2 from 0.019 s to 0.030 s"},
		},
		{
			name: "a worker notices late that it has lost the lock",
			file: "1 1 enter 1000 0\n2 2 enter 2000 0\n1 1 lost 2500 0\n2 2 leave 2600 0\n",
			want: Report{Entries: 2, Overlaps: 1, FirstOverlap: "worker 1 was inside with fence 1 from 1.000 s to 2.500 s, when it noticed that it had lost the lock; worker 2 was inside with fence 2 from 2.000 s to 2.600 s"},
		},
		{
			name: "a long stay covers several entries",
			file: "1 1 enter 10 0\n2 2 enter 12 0\n2 2 leave 13 0\n3 2 enter 14 0\n3 2 leave 15 0\n1 1 leave 20 0\n",
			want: Report{Entries: 3, Overlaps: 2, FirstOverlap: "worker 1 was inside with fence 1 from 0.010 s to 0.020 s; worker 2 was inside with fence 2 from 0.012 s to 0.013 s"},
		},
		{
			name: "a stay ends when it is lost",
			file: "1 1 enter 10 0\n1 1 lost 20 0\n2 2 enter 21 0\n2 2 leave 22 0\n",
			want: Report{Entries: 2},
		},
		{
			name: "a stay that nobody ended lasts",
			file: "1 1 enter 10 0\n2 2 enter 50 0\n2 2 leave 51 0\n",
			want: Report{Entries: 2, Overlaps: 1, FirstOverlap: "worker 1 was inside with fence 1 from 0.010 s and never left; worker 2 was inside with fence 2 from 0.050 s to 0.051 s"},
		},
		{
			name:  "a stay ends with the reaped kill of its worker",
			file:  "1 1 enter 10 0\n2 2 enter 3050 0\n2 2 leave 3051 0\n",
			kills: []kill{{worker: 1, sent: 40, reaped: 45}},
			want:  Report{Entries: 2, WorkerKills: 1, takeover: 3010 * time.Millisecond},
		},
		{
			name:  "a kill that is not reaped in time",
			file:  "1 1 enter 10 0\n2 2 enter 44 0\n2 2 leave 46 0\n3 2 enter 60 0\n3 2 leave 61 0\n",
			kills: []kill{{worker: 1, sent: 40, reaped: 45}},
			want: Report{Entries: 3, Overlaps: 1, WorkerKills: 1, takeover: 20 * time.Millisecond,
				FirstOverlap: "worker 1 was inside with fence 1 from 0.010 s to 0.045 s; worker 2 was inside with fence 2 from 0.044 s to 0.046 s"},
		},
		{
			name: "a fence goes back",
			file: "5 1 enter 10 0\n5 1 leave 20 0\n4 2 enter 20 0\n4 2 leave 30 0\n5 1 enter 30 0\n5 1 leave 40 0\n",
			want: Report{Entries: 3, FenceRegressions: 2},
		},
		{
			name:  "the last replies of a dead leader are not its successor's",
			file:  "1 1 enter 99 0\n1 1 leave 101 0\n2 2 enter 102 0\n2 2 leave 103 0\n3 1 enter 400 0\n3 1 leave 401 0\n",
			kills: []kill{{sent: 100, reaped: 101}},
			want:  Report{Entries: 3, LeaderKills: 1, FailoverMS: []float64{300}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := verdict(t, c.file, c.kills...)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Report{})); diff != "" {
				t.Error(diff)
			}
			if got.Good() != (c.want.Overlaps+c.want.FenceRegressions == 0) {
				t.Errorf("Good() = %v", got.Good())
			}
		})
	}
}

func TestRecordsAreRead(t *testing.T) {
	want := record{fence: 1 << 62, worker: 8, event: enter, at: 123, waited: 45}
	got, err := readRecords(strings.NewReader(want.String()))
	if err != nil || len(got) != 1 || got[0] != want {
		t.Fatalf("read %v, %v", got, err)
	}
	if _, err := readRecords(strings.NewReader("1 2 enter\n")); err == nil {
		t.Fatal("half a line is read as a whole one")
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if quantile(values, 0.5) != 5 || quantile(values, 0.99) != 10 || quantile(nil, 0.5) != 0 {
		t.Fatal(quantile(values, 0.5), quantile(values, 0.99), quantile(nil, 0.5))
	}
}
