// Runs before the page is painted, so that neither the theme nor the open tabs change under the reader's eyes.
document.documentElement.classList.add('js')
try {
  for (const name of ['theme', 'language']) {
    const kept = localStorage.getItem(`muster-${name}`)
    if (kept !== null) document.documentElement.dataset[name] = kept
  }
} catch {
  // Storage is switched off: the defaults hold.
}
document.documentElement.dataset.language ??= 'curl'
