// Where an element is: a share of its width from the left, and half of its height from the top.
const [css, across] = arguments, box = document.querySelector(css).getBoundingClientRect();
return [box.left + box.width * across, box.top + box.height / 2];
