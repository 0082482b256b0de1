// Lets the search work where the site is opened from a disk. Browsers start no worker from a file://
// page, so there the search's script runs in a hidden frame, which takes the same messages.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class {
    constructor(url) {
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.title = "Search"
      frame.srcdoc = "<!doctype html>"
      this.ready = new Promise((resolve, reject) => {
        frame.onload = () => {
          const inside = frame.contentWindow
          inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }))
          const script = inside.document.createElement("script")
          script.src = new URL(url, location)
          script.onload = () => resolve(inside)
          script.onerror = reject
          inside.document.body.append(script)
        }
      })
      document.body.append(frame)
      this.terminate = () => frame.remove()
    }

    postMessage(data) {
      const copy = structuredClone(data) // as a worker's messages are
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data: copy })))
    }
  }
}
