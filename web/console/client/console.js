/** What the server cannot do: copying, counting down, and saying how long ago something was while a page stays open. */

document.documentElement.classList.add('js')

document.addEventListener('click', async (event) => {
  const button = event.target.closest?.('[data-copy]')
  if (!button) return
  await navigator.clipboard.writeText(button.dataset.copy)
  button.classList.add('copied')
  setTimeout(() => button.classList.remove('copied'), 1_500)
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** As `relative` in ui.ts says it. */
function relative(ms) {
  const size = Math.abs(ms)
  if (size < 1_000) return 'now'
  const [unit, name] = size < MINUTE ? [1_000, 's'] : size < HOUR ? [MINUTE, 'min'] : size < DAY ? [HOUR, 'h'] : [DAY, 'd']
  const text = `${Math.floor(size / unit)} ${name}`
  return ms < 0 ? `${text} ago` : `in ${text}`
}

function tick() {
  for (const time of document.querySelectorAll('time[datetime]:not(.exact)')) {
    const text = relative(Date.parse(time.dateTime) - Date.now())
    if (time.textContent !== text) time.textContent = text
  }
}
tick()
setInterval(tick, 1_000)
