/** Announces what an action did. There is one announcement at a time. It closes by itself, unless it
 *  offers a button, or the pointer or the focus is on it. */

const OPEN_MS = { ok: 6_000, bad: 20_000 }
let timer

/**
 * @param {'ok' | 'bad'} kind
 * @param {string} text
 * @param {() => void} [retry] runs when the user presses Retry
 */
export function announce(kind, text, retry) {
  const toast = Object.assign(document.createElement('div'), { className: `toast ${kind}` })
  toast.append(Object.assign(document.createElement('p'), { textContent: text }))
  if (retry) toast.append(newButton('Retry', 'button', retry))
  region().replaceChildren(toast)
  makeClosable(toast, retry ? undefined : OPEN_MS[kind])
}

export function closeAnnouncement() {
  clearTimeout(timer)
  region().replaceChildren()
}

let awaited

/** An action on an element is announced. The result, which the element gets when it reloads, replaces
 *  this announcement. `earlier` is the result before the action. */
export function awaitResult(id, earlier) {
  awaited = { id, earlier }
  announceResult()
}

function announceResult() {
  const { result, tone } = document.getElementById(awaited?.id)?.dataset ?? {}
  if (!result || result === awaited.earlier) return
  awaited = undefined
  announce(tone, result)
}

document.addEventListener('htmx:after:swap', announceResult)

function region() {
  return document.getElementById('toast')
}

// The announcement of the server.
const [first] = region().children
if (first) makeClosable(first, OPEN_MS[first.classList.contains('ok') ? 'ok' : 'bad'])

function makeClosable(toast, openMs) {
  const close = newButton('×', 'icon-button', closeAnnouncement)
  close.ariaLabel = 'Close the message'
  toast.append(close)
  clearTimeout(timer)
  if (openMs !== undefined) timer = setTimeout(() => closeUnlessInUse(openMs), openMs)
}

function closeUnlessInUse(openMs) {
  if (!region().matches(':hover, :focus-within')) return closeAnnouncement()
  timer = setTimeout(() => closeUnlessInUse(openMs), openMs)
}

function newButton(text, className, onClick) {
  const button = Object.assign(document.createElement('button'), {
    type: 'button',
    className,
    textContent: text,
  })
  button.addEventListener('click', onClick)
  return button
}
