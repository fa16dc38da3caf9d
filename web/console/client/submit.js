/** Sends forms that change something. If a request fails, the page and its input stay, and the user
 *  learns whether the change may have been made. Without JavaScript, the browser sends the forms. */
import { announce, awaitResult, closeAnnouncement } from './announce.js'
import { closeLists } from './combobox.js'

const TIMEOUT_MS = 60_000

document.addEventListener('submit', (event) => {
  const { target: form, submitter } = event
  const method = submitter?.getAttribute('formmethod') ?? form.getAttribute('method')
  if (method !== 'post' || event.defaultPrevented) return
  event.preventDefault()
  const data = new FormData(form, submitter)
  const hasFile = form.enctype === 'multipart/form-data'
  send({
    form,
    button: submitter,
    path: submitter?.getAttribute('formaction') ?? form.getAttribute('action'),
    body: hasFile ? data : new URLSearchParams(data),
    timeoutMs: hasFile ? undefined : TIMEOUT_MS,
  })
})

// The browser may show this page again, as it was when the next page opened.
addEventListener('pageshow', ({ persisted }) => {
  if (!persisted) return
  for (const element of document.querySelectorAll('[aria-busy]')) element.ariaBusy = null
})

/** A retry sends the same bytes, and so the same key of the form: the change is made only once. */
async function send(request) {
  const { form } = request
  if (form.ariaBusy) return
  closeAnnouncement()
  const retry = () => send(request)
  const fail = (text) => {
    // An open dialog would cover the announcement.
    form.closest('[popover]')?.hidePopover()
    announce('bad', text, retry)
  }
  if (!navigator.onLine) return fail('No connection. Nothing was sent.')
  setBusy(request, true)
  const response = await post(request)
  // The next page replaces this one, which stays busy until then.
  if (response?.redirect) return location.assign(response.redirect)
  setBusy(request, false)
  if (!response) return fail('The change may have been made. There was no usable response.')
  const { page, outcome, isUnavailable } = response
  if (!outcome) return show(form, page)
  const text = page.querySelector('.page-head ~ p').textContent
  if (outcome === 'unknown') return fail(`The change may have been made. ${text}`)
  if (isUnavailable) return fail(`Not saved. ${text}`)
  form.closest('[popover]')?.hidePopover()
  announce('bad', text)
}

/** Undefined if no page of the console arrived. */
async function post({ form, path, body, timeoutMs }) {
  try {
    const response = await fetch(path, {
      method: 'POST',
      body,
      // The response to a form that changes a part of the page is a redirect to the new part.
      headers: form.dataset.target ? { 'HX-Request': 'true' } : { 'Muster-Form': '1' },
      signal: timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs),
    })
    const redirect = response.headers.get('HX-Redirect')
    if (redirect) return { redirect }
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const outcome = response.headers.get('Muster-Outcome')
    const isUnavailable = response.status === 429 || response.status >= 500
    return page.getElementById('main') ? { page, outcome, isUnavailable } : undefined
  } catch {
    return undefined
  }
}

function setBusy({ form, button }, isBusy) {
  form.ariaBusy = isBusy ? 'true' : null
  if (button) button.ariaBusy = form.ariaBusy
}

/** Replaces the part of the page that the form changes, or all of the main part. */
function show(form, page) {
  const notice = page.querySelector('.toast')
  const id = form.dataset.target ?? 'main'
  const [before, after] = [document.getElementById(id), page.getElementById(id)]
  if (!after) return location.reload()
  const hadFocus = before?.contains(document.activeElement)
  before?.replaceWith(after)
  htmx.process(after)
  if (id === 'main') {
    document.title = page.title
    scrollTo(0, 0)
  }
  if (hadFocus) focusIn(after)
  // Open lists would cover the errors.
  closeLists()
  if (notice) announce(notice.classList.contains('bad') ? 'bad' : 'ok', notice.textContent)
  awaitResult(id, before?.dataset.result)
}

/** The first field with an error, or the first control that the user can use next. */
function focusIn(element) {
  const target = element.querySelector('[aria-invalid]') ?? element.querySelector('a.toggle')
  const focused = target ?? (element.id === 'main' ? element : undefined)
  focused?.focus()
}
