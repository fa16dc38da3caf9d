/** Sends the request that a "Try it" form describes, and shows what comes back. */
const KEPT = 'muster-try-key'
const MAX_SHOWN = 20_000

for (const form of document.querySelectorAll('[data-try]')) {
  const answer = form.parentElement.querySelector('[data-answer]')
  // For this tab alone, so that a reader does not give it again on every page.
  form.elements.key.value = kept()
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    keep(form.elements.key.value.trim())
    const button = form.querySelector('[type=submit]')
    button.disabled = true
    try {
      show(answer, await send(form))
    } catch (error) {
      show(answer, { title: 'No answer', text: error.message })
    } finally {
      button.disabled = false
    }
  })
}

function kept() {
  try {
    return sessionStorage.getItem(KEPT) ?? ''
  } catch {
    return ''
  }
}

function keep(key) {
  try {
    sessionStorage.setItem(KEPT, key)
  } catch {
    // Storage is switched off: the key stays in the form.
  }
}

function valuesIn(form, where) {
  const inputs = [...form.querySelectorAll(`[data-in=${where}]`)]
  return inputs.map(({ name, value }) => [name, value.trim()]).filter(([, value]) => value !== '')
}

async function send(form) {
  const { method, url } = form.dataset
  const path = valuesIn(form, 'path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value)),
    url,
  )
  const query = new URLSearchParams(valuesIn(form, 'query'))
  const headers = {
    Authorization: `Bearer ${form.elements.key.value.trim()}`,
    ...Object.fromEntries(valuesIn(form, 'header')),
  }
  const body = form.elements.body?.value
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const start = performance.now()
  const response = await fetch(query.size > 0 ? `${path}?${query}` : path, {
    method,
    headers,
    body,
    redirect: 'error',
    cache: 'no-store',
  })
  const text = await response.text()
  const milliseconds = Math.round(performance.now() - start)
  return {
    status: response.status,
    title: `${response.status} ${response.statusText} in ${milliseconds} ms`,
    headers: [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
    text: readable(text),
  }
}

function readable(text) {
  let shown = text
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    // Not JSON: as it came.
  }
  return shown.length > MAX_SHOWN
    ? `${shown.slice(0, MAX_SHOWN)}\n… ${shown.length - MAX_SHOWN} more characters`
    : shown
}

function show(answer, { status, title, headers, text }) {
  const heading = document.createElement('p')
  heading.className = `status s${status ? Math.floor(status / 100) : 5}`
  heading.textContent = title
  const parts = [heading]
  if (text !== '') parts.push(blockOf(text, 'Answer'))
  if (headers) {
    const details = document.createElement('details')
    const summary = document.createElement('summary')
    summary.textContent = 'Headers'
    details.append(summary, blockOf(headers, 'Headers'))
    parts.push(details)
  }
  answer.replaceChildren(...parts)
  answer.hidden = false
}

function blockOf(text, label) {
  const block = document.createElement('div')
  block.className = 'code'
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.className = 'copy'
  copy.dataset.copy = ''
  copy.textContent = 'Copy'
  const pre = document.createElement('pre')
  pre.tabIndex = 0
  pre.setAttribute('role', 'group')
  pre.setAttribute('aria-label', label)
  pre.textContent = text
  block.append(copy, pre)
  return block
}
