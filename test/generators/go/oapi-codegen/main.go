// Calls the API with a client that oapi-codegen generated, and reports what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"generators/oapi-codegen/muster"

	"github.com/google/uuid"
	"github.com/oapi-codegen/runtime/types"
)

func main() {
	ctx := context.Background()
	client := newClient(os.Getenv("MUSTER_URL"))
	report := map[string]any{}

	var participant muster.Id
	for name, status := range map[string]muster.NewParticipantStatus{
		"Ada":   muster.NewParticipantStatusActive,
		"Grace": muster.NewParticipantStatusInactive,
		"Alan":  muster.NewParticipantStatusArchived,
	} {
		email := types.Email(name + "@example.com")
		body := muster.ParticipantCreate{FullName: name, Email: &email, Status: &status}
		participant = must(client.CreateParticipantWithResponse(ctx, nil, body)).JSON201.Id
	}

	var names []string
	size := muster.PageSize(1)
	for number, last := muster.PageNumber(1), muster.PageNumber(1); number <= last; number++ {
		page := must(client.ListParticipantsWithResponse(ctx, &muster.ListParticipantsParams{
			PageNumber:   &number,
			PageSize:     &size,
			FilterStatus: &[]muster.ParticipantStatus{muster.ParticipantStatusActive, muster.ParticipantStatusInactive},
			Sort:         &[]muster.ParticipantSort{muster.ParticipantSortFULLNAMEASCENDING},
		})).JSON200
		names = append(names, page.Data[0].FullName)
		last = page.Meta.LastPage
	}
	report["names"] = names

	missing := must(client.GetParticipantWithResponse(ctx, uuid.New(), nil))
	report["not_found"] = missing.JSON404.Message
	email := types.Email("ada@example.com")
	invalid := must(client.CreateParticipantWithResponse(ctx, nil, muster.ParticipantCreate{FullName: "Ada", Email: &email}))
	report["invalid"] = invalid.JSON422.Errors

	payment := muster.PaymentCreate{ParticipantId: participant, AmountMinor: 3_000_000_000, Currency: muster.VND}
	must(client.CreatePaymentWithResponse(ctx, nil, payment))
	payments := must(client.ListPaymentsWithResponse(ctx, nil))
	report["amount_minor"] = payments.JSON200.Data[0].AmountMinor

	job := must(client.CreateJobWithResponse(ctx, nil, muster.JobCreate{
		Title:              "Interpreter",
		ScreeningQuestions: &[]muster.ScreeningQuestionInput{yearsQuestion(), cityQuestion()},
	}))
	report["questions"] = job.JSON201.ScreeningQuestions

	events := must(client.ListEventsWithResponse(ctx, nil))
	var types []string
	for _, event := range events.JSON200.Data {
		types = append(types, must(event.Discriminator()))
	}
	report["event_types"] = types

	proxy := newClient(os.Getenv("MUSTER_PROXY_URL"))
	if changed, err := proxy.ListParticipantsWithResponse(ctx, nil); err != nil {
		report["new_status"] = map[string]string{"error": err.Error()}
	} else {
		report["new_status"] = changed.JSON200.Data[0].Status
	}

	if changed, err := proxy.ListEventsWithResponse(ctx, nil); err != nil {
		report["new_event_type"] = map[string]string{"error": err.Error()}
	} else {
		report["new_event_type"] = must(changed.JSON200.Data[0].Discriminator())
	}

	limited := must(client.ListParticipantsWithResponse(ctx, nil))
	for limited.JSON429 == nil {
		limited = must(client.ListParticipantsWithResponse(ctx, nil))
	}
	report["too_many_requests"] = limited.JSON429.Message
	report["headers"] = map[string]any{
		"X-RateLimit-Limit":     limited.Headers429.XRateLimitLimit,
		"X-RateLimit-Remaining": limited.Headers429.XRateLimitRemaining,
		"X-RateLimit-Reset":     limited.Headers429.XRateLimitReset,
		"RateLimit":             limited.Headers429.RateLimit,
		"RateLimit-Policy":      limited.Headers429.RateLimitPolicy,
		"Retry-After":           limited.Headers429.RetryAfter,
	}
	fmt.Println(string(must(json.Marshal(report))))
}

func yearsQuestion() (question muster.ScreeningQuestionInput) {
	check(question.FromNumberQuestion(muster.NumberQuestion{
		Key:         "years",
		Label:       "Years?",
		Requirement: muster.MustHave,
		Operator:    muster.AtLeast,
		Expected:    5,
	}))
	return question
}

func cityQuestion() (question muster.ScreeningQuestionInput) {
	cities := make([]muster.AnswerValue, 2)
	check(cities[0].FromAnswerValue0("Lyon"))
	check(cities[1].FromAnswerValue0("Paris"))
	check(question.FromOneOfQuestion(muster.OneOfQuestion{
		Key:         "city",
		Label:       "City?",
		Requirement: muster.NiceToHave,
		Operator:    muster.OneOf,
		Expected:    cities,
	}))
	return question
}

func newClient(url string) *muster.ClientWithResponses {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		return nil
	}
	return must(muster.NewClientWithResponses(url, muster.WithRequestEditorFn(authorize)))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
