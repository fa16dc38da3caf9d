/** Sends the request of a "Try it" form and shows the response. */
const KEY_ITEM = 'muster-try-key'
const MAX_SHOWN_CHARACTERS = 20_000
/** By the first digit of the status. */
const TONES = { 2: 'ok', 3: 'busy', 4: 'warn' }

for (const form of document.querySelectorAll('[data-try]')) {
  const output = form.parentElement.querySelector('[data-response]')
  // Session storage keeps the key for this browser tab only.
  const { key } = form.elements
  key.value = readKey()
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    saveKey(key.value.trim())
    const button = form.querySelector('[type=submit]')
    button.disabled = true
    try {
      show(output, await send(form))
    } catch (error) {
      show(output, { title: 'No response', text: error.message })
    } finally {
      button.disabled = false
    }
  })
}

/** The curl sample reads the key from the environment, unless the reader wants to see the key. */
const curlSample = document.querySelector('#request-curl pre')
const curlText = curlSample?.innerHTML
for (const box of document.querySelectorAll('[data-key-in-sample]')) {
  const { key } = box.form.elements
  const showKey = () => {
    curlSample.innerHTML = curlText
    const isShown = box.checked && key.value.trim() !== ''
    for (const node of isShown ? textNodes(curlSample) : [])
      node.data = node.data.replaceAll('$MUSTER_API_KEY', key.value.trim())
  }
  box.addEventListener('change', showKey)
  key.addEventListener('input', showKey)
}

function* textNodes(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) yield walker.currentNode
}

function readKey() {
  try {
    return sessionStorage.getItem(KEY_ITEM) ?? ''
  } catch {
    return ''
  }
}

function saveKey(key) {
  try {
    sessionStorage.setItem(KEY_ITEM, key)
  } catch {
    // Storage is disabled: the key stays in the form.
  }
}

function readParameters(form, location) {
  const inputs = [...form.querySelectorAll(`[data-in=${location}]`)]
  return inputs.map(({ name, value }) => [name, value.trim()]).filter(([, value]) => value !== '')
}

async function send(form) {
  const { method, url } = form.dataset
  const pathValues = new Map(readParameters(form, 'path'))
  const path = url.replace(/\{(.*?)\}/g, (_, name) =>
    encodeURIComponent(pathValues.get(name) ?? ''),
  )
  const query = new URLSearchParams(readParameters(form, 'query'))
  const { key, body } = form.elements
  const headers = Object.fromEntries(readParameters(form, 'header'))
  headers.Authorization = `Bearer ${key.value.trim()}`
  if (body) headers['Content-Type'] = body.dataset.type
  const start = performance.now()
  const response = await fetch(query.size > 0 ? `${path}?${query}` : path, {
    method,
    headers,
    body: body?.value,
    redirect: 'error',
    cache: 'no-store',
  })
  const text = await response.text()
  const milliseconds = Math.round(performance.now() - start)
  return {
    status: response.status,
    title: `${response.status} ${response.statusText} in ${milliseconds} ms`,
    headers: [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
    text: formatBody(text),
  }
}

/** Numbers stay as sent: JavaScript would round IDs of 64 bits. */
const keepNumber = (_, value, { source }) =>
  typeof value === 'number' ? JSON.rawJSON(source) : value

function formatBody(text) {
  let shown = text
  try {
    shown = JSON.stringify(JSON.parse(text, keepNumber), null, 2)
  } catch {
    // The text is not JSON, or the browser lacks `rawJSON`: show the text unchanged.
  }
  return shown.length > MAX_SHOWN_CHARACTERS
    ? `${shown.slice(0, MAX_SHOWN_CHARACTERS)}\n… ${shown.length - MAX_SHOWN_CHARACTERS} more characters`
    : shown
}

function show(output, { status, title, headers, text }) {
  const heading = document.createElement('p')
  heading.className = `pill ${TONES[Math.floor(status / 100)] ?? 'bad'}`
  heading.textContent = title
  const parts = [heading]
  if (text !== '') parts.push(codeBlock(text, 'Response'))
  if (headers) {
    const details = document.createElement('details')
    const summary = document.createElement('summary')
    summary.textContent = 'Headers'
    details.append(summary, codeBlock(headers, 'Headers'))
    parts.push(details)
  }
  output.replaceChildren(...parts)
  output.hidden = false
}

function codeBlock(text, label) {
  const block = document.createElement('div')
  block.className = 'code-block'
  const copy = document.createElement('button')
  copy.type = 'button'
  copy.className = 'button copy'
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
