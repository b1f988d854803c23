// SPDX-License-Identifier: GPL-2.0-only
// What is to be seen of a page, as tests/report/seen.py takes it.
(() => {
	const box = area => [area.left, area.top, area.right, area.bottom];
	const colour = text => {
		const [red, green, blue, alpha] = text.match(/[\d.]+/g).map(Number);
		return { parts: [red, green, blue], alpha: alpha ?? 1 };
	};
	const over = (top, parts) => parts.map((part, index) => top.alpha * top.parts[index] + (1 - top.alpha) * part);
	const ofPicture = element => element instanceof SVGElement;

	const paint = (element, name) => {
		const style = getComputedStyle(element);
		if (!ofPicture(element)) return colour(name === "ink" ? style.color : style.backgroundColor);
		if (style.fill === "none" || element.tagName === "svg") return { parts: [0, 0, 0], alpha: 0 };
		const found = colour(style.fill);
		return { ...found, alpha: found.alpha * style.fillOpacity * style.opacity };
	};
	// All that is painted at the middle of a text, one above the other.
	const under = area => {
		const stack = document.elementsFromPoint((area.left + area.right) / 2, (area.top + area.bottom) / 2);
		const below = stack.filter(element => element.tagName !== "text").reverse();
		return below.reduce((parts, element) => over(paint(element), parts), paint(document.body).parts);
	};
	const size = element => {
		const matrix = ofPicture(element) ? element.getScreenCTM() : { a: 1, b: 0 };
		return parseFloat(getComputedStyle(element).fontSize) * Math.hypot(matrix.a, matrix.b);
	};

	const pictures = [...document.querySelectorAll("svg")];
	const texts = [];
	const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const element = walker.currentNode.parentElement;
		if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.tagName === "style") continue;
		const range = document.createRange();
		range.selectNodeContents(walker.currentNode);
		for (const area of range.getClientRects()) {
			const background = under(area);
			texts.push({
				text: walker.currentNode.data.trim(),
				picture: pictures.indexOf(element.closest("svg")),
				box: box(area),
				size: size(element),
				ink: over(paint(element, "ink"), background),
				background,
				scrolls: element.closest(".scroll") !== null,
			});
		}
	}
	const shown = element => element.checkVisibility() && element.getBoundingClientRect().height > 60;
	return {
		width: document.documentElement.clientWidth,
		content: document.documentElement.scrollWidth,
		texts,
		pictures: pictures.map(each => ({
			figure: each.closest("figure").id,
			form: each.parentElement.className,
			shown: shown(each),
			box: box(each.getBoundingClientRect()),
		})),
		commands: Object.fromEntries([...document.querySelectorAll("figure")].map(each => [
			each.id, [...each.querySelectorAll("code")].filter(code => code.checkVisibility()).map(code => code.innerText),
		])),
	};
})()
