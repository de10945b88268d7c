const SPEED = Number(process.env['SPEED'] ?? 1)

/**
 * Milliseconds of this demonstration. With SPEED=2 in the environment they are half as long.
 *
 * @param {number} ms
 */
export function atSpeed(ms) {
  return Math.round(ms / SPEED)
}
