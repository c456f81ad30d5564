package certs

import (
	"slices"
	"testing"
	"time"
)

// TestWarningsOfExpiry goes through the last 40 days of a certificate minute by minute.
func TestWarningsOfExpiry(t *testing.T) {
	end := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	said := make(Warnings)
	var days []int
	hourly, texts := 0, make(map[string]bool)
	for now := end.Add(-40 * day); now.Before(end.Add(2 * time.Hour)); now = now.Add(time.Minute) {
		text := said.Due("the certificate for peers", end, now)
		switch left := end.Sub(now); {
		case text == "":
		case left > day:
			days = append(days, int(left/day))
		default:
			hourly++
			texts[text] = true
		}
	}
	if want := []int{30, 14, 7, 3}; !slices.Equal(days, want) {
		t.Errorf("warned when %v days were left, want %v", days, want)
	}
	if hourly != 26 || !texts["the certificate for peers expires in 24h0m0s"] || !texts["the certificate for peers has expired"] {
		t.Errorf("%d warnings in the last 26 hours: %v", hourly, texts)
	}
	if text := said.Due("the certificate for peers", end.Add(365*day), end.Add(2*time.Hour)); text != "" {
		t.Errorf("of a new certificate it says %q", text)
	}
	if text := said.Due("the certificate for peers", end.Add(20*day), end.Add(2*time.Hour)); text != "the certificate for peers expires in 19 days" {
		t.Errorf("of one with 20 days it says %q", text)
	}
	if text := said.Due("the certificate for clients", end.Add(10*day), end); text != "the certificate for clients expires in 10 days" {
		t.Errorf("of the other certificate it says %q", text)
	}
}
