// Imports people.csv, saved by a spreadsheet program as CSV in UTF-8. Its first row names fields of a
// participant, for example full_name,email,external_id. Writes refused rows to refused.csv.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type importRecord struct {
	ID        string
	Status    string
	Error     string
	Created   int `json:"created_count"`
	Updated   int `json:"updated_count"`
	Unchanged int `json:"unchanged_count"`
	Refused   int `json:"refused_count"`
}

func call(method, path string, data []byte) []byte {
	key := rand.Text()
	for {
		request, err := http.NewRequest(method, os.Getenv("MUSTER_URL")+"/public/v1"+path, bytes.NewReader(data))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		if data != nil {
			request.Header.Set("Content-Type", "text/csv")
			request.Header.Set("Idempotency-Key", key)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if response.StatusCode < 300 {
			return text
		}
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if (response.StatusCode != 429 && response.StatusCode != 503) || seconds == 0 {
			log.Fatalf("%s: %s", response.Status, text)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func main() {
	file, err := os.ReadFile("people.csv")
	if err != nil {
		log.Fatal(err)
	}
	var found importRecord
	read := func(text []byte) {
		if err := json.Unmarshal(text, &found); err != nil {
			log.Fatal(err)
		}
	}
	read(call("POST", "/imports?resource=participants&mode=upsert", file))
	for found.Status == "queued" || found.Status == "processing" {
		time.Sleep(2 * time.Second)
		read(call("GET", "/imports/"+found.ID, nil))
	}
	fmt.Printf("%d created, %d updated, %d unchanged, %d refused.\n",
		found.Created, found.Updated, found.Unchanged, found.Refused)
	if found.Refused > 0 {
		rows := call("GET", "/imports/"+found.ID+"/errors", nil)
		if err := os.WriteFile("refused.csv", rows, 0o600); err != nil {
			log.Fatal(err)
		}
		fmt.Fprintln(os.Stderr, "Correct the rows in refused.csv, and import them again.")
	}
	if found.Status == "failed" {
		log.Fatal(found.Error)
	}
}
