// Draws the figures of a page with the template of its theme, and again where the reader changes the theme.
function drawFigures(figures, templates) {
  var dark = matchMedia('(prefers-color-scheme: dark)');
  function draw() {
    figures.forEach(function (figure) {
      var box = document.getElementById(figure.id);
      box.classList.toggle('parcoords', figure.data[0].type === 'parcoords');
      figure.layout.template = templates[dark.matches ? 'dark' : 'light'];
      var camera = { format: 'png', scale: 2, filename: figure.id };
      Plotly.react(box, figure.data, figure.layout, { displaylogo: false, responsive: true, toImageButtonOptions: camera });
    });
  }
  draw();
  dark.addEventListener('change', draw);
}
