/** A disk that can become full: a file system in memory. `fill` limits its size to what it
 *  holds. */
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

export interface Disk extends Disposable {
  folder: string
  /** From now on no file can grow. */
  fill(): Promise<void>
  /** Ends the effect of `fill`. */
  free(): void
}

const UNLIMITED = 0

/** Undefined where this user may not mount a file system: only root may, and not in every
 *  container. */
export function openDisk(folder: string): Disk | undefined {
  mkdirSync(folder)
  try {
    mount(folder, `size=${UNLIMITED}`)
  } catch {
    console.error('Without the fault "disk full": this user may not mount a file system.')
    return undefined
  }
  const unmount = (): void => void execFileSync('umount', ['--lazy', folder])
  process.once('exit', unmount)
  const resize = (bytes: number): void => mount(folder, `remount,size=${bytes}`)
  return {
    folder,
    async fill() {
      const { blocks, bfree, bsize } = await statfs(folder)
      resize((blocks - bfree) * bsize)
    },
    free: () => resize(UNLIMITED),
    [Symbol.dispose]() {
      process.off('exit', unmount)
      unmount()
    },
  }
}

function mount(folder: string, options: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'muster-chaos', folder], { stdio: 'pipe' })
}
