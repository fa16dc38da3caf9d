// Runs before the first paint, so that neither the theme nor the code tabs flicker.
document.documentElement.classList.add('js')
try {
  for (const name of ['theme', 'language']) {
    const saved = localStorage.getItem(`muster-${name}`)
    if (saved !== null) document.documentElement.dataset[name] = saved
  }
} catch {
  // Storage is disabled: use the defaults.
}
document.documentElement.dataset.language ??= 'curl'
