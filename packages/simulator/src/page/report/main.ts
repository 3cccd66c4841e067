document.querySelector("main")?.append("A report of floodgate simulate.");
