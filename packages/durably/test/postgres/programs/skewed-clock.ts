/** Makes this process believe that it is another time. What measures durations goes on as before. */
export function skewClock(ms: number): void {
  const RealDate = globalThis.Date
  const now = () => RealDate.now() + ms
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  })
}
