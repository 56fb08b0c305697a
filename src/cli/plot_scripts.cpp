#include "cli/plot_scripts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include <algorithm>
#include <iterator>

#include "cli/plot_channels.h"
#include "posenc/sinusoid/table.h"

namespace posenc::cli {
namespace {

// Eight steps of matplotlib's viridis, which gnuplot 5.4 does not include.
constexpr const char* kViridis =
    "set palette defined (0 '#440154', 1 '#472d7b', 2 '#3b528b', 3 '#2c728e', 4 '#21918c', "
    "5 '#28ae80', 6 '#5ec962', 7 '#addc30', 8 '#fde725')\n";
constexpr const char* kSine = "#31688e";
constexpr const char* kCosine = "#d1662a";
constexpr int64_t kFew = 10;         // cells on an axis
constexpr int64_t kMostSlices = 40;  // of a grid, to draw lines between

// Tics at integers only: with few cells, gnuplot would also place them at halves.
std::string whole_tics(char axis, int64_t count) {
  return count <= kFew ? fmt::format("set {}tics {}\n", axis, count > kFew / 2 ? 2 : 1) : "";
}

// Axes start at -0.5, so that the centre of a cell is its index. Position 0 is at the top, as in a
// matrix.
std::string image_axes(int64_t columns, int64_t rows) {
  return fmt::format(
             "set xrange [-0.5:{}.5]\nset yrange [{}.5:-0.5]\nset tics out nomirror\n"
             "set border lw 0.8\nunset key\n",
             columns - 1, rows - 1) +
         whole_tics('x', columns) + whole_tics('y', rows);
}

// Whether row i is the sinusoid at position i, so that curves run through the table's points.
bool rows_are_positions(const SinusoidOptions& recipe) {
  return recipe.grid().empty() && !recipe.cls_row() && !recipe.zero_row() &&
         recipe.position_range() == sinusoid::PositionRange::Up && recipe.start() == 0.0 &&
         recipe.step() == 1.0 && !recipe.angle_by_length() &&
         recipe.post() != sinusoid::Post::Standardize;
}

// The colour range: -1 to 1, or that of the data if the table is scaled or holds coordinates.
std::string colour_range(const SinusoidOptions& recipe) {
  const bool unit = recipe.post() == sinusoid::Post::None && !recipe.raw_first();
  return unit ? "set cbrange [-1:1]\nset cbtics -1,0.5,1\n" : "";
}

const char* row_name(const SinusoidOptions& recipe) {
  return rows_are_positions(recipe) ? "Position" : "Row";
}

Figure heat_map(const std::string& preset, const SinusoidOptions& recipe, const at::Tensor& table) {
  const int64_t length = table.size(0), dim = table.size(1);
  std::string script = data_block("table", table) + kViridis + image_axes(dim, length);
  script += fmt::format(
      "set title 'Positional encoding: {}, D = {}, L = {}'\n"
      "set xlabel 'Dimension'\nset ylabel '{}'\n{}set cblabel 'Value'\n"
      "plot $table matrix with image\n",
      preset, dim, length, row_name(recipe), colour_range(recipe));
  return {"heat_map", 1000, 640, script};
}

// Columns: x, then the sinusoid's dimensions at x, with ten points per position for a smooth curve.
at::Tensor curves(const SinusoidOptions& recipe, int64_t length,
                  const std::vector<int64_t>& dimensions) {
  const int64_t steps = length > 1000 ? 1 : 10;
  const auto x = torch::arange((length - 1) * steps + 1, torch::kDouble) / double(steps);
  const auto rows = sinusoid_rows(recipe, x);
  return torch::cat(
      {x.unsqueeze(1).to(torch::kFloat), rows.index_select(1, torch::tensor(dimensions))}, 1);
}

Figure waveforms(const std::string& preset, const SinusoidOptions& recipe,
                 const at::Tensor& table) {
  const int64_t length = table.size(0), dim = table.size(1);
  const auto dimensions = shown_channels(recipe, table);
  const int64_t rows = (static_cast<int64_t>(dimensions.size()) + 1) / 2;
  const bool smooth = rows_are_positions(recipe);
  const double height = 60 + 210 * rows;  // in pixels: a title, then the rows
  std::string script = data_block("table", table);
  if (smooth) script += data_block("curve", curves(recipe, length, dimensions));
  script += fmt::format(
      "set multiplot layout {},2 title 'Waveforms: {}, D = {}' offset 0,-0.2 "
      "margins 0.065,0.98,{},{} spacing 0.075,{}\n",
      rows, preset, dim, 55 / height, 1 - 80 / height, 75 / height);
  script += fmt::format(
      "set xrange [-0.5:{}.5]\n{}set tics out nomirror\n"
      "set border 3 lw 0.8\nset grid ytics lc rgb '#d0d0d0' lt 1 lw 0.6\nunset key\n",
      length - 1,
      colour_range(recipe).empty() ? "" : "set yrange [-1.15:1.15]\nset ytics -1,1,1\n");
  script += whole_tics('x', length);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const int64_t k = dimensions[i];
    const std::string function = function_of(recipe, k);
    const char* colour = function == " (cos)" ? kCosine : kSine;
    const std::string curve =
        smooth ? fmt::format("$curve using 1:{}", i + 2) : fmt::format("$table using 0:{}", k + 1);
    script += fmt::format(
        "set title 'Dimension {}{}' offset 0,-0.6\nset xlabel '{}' offset 0,0.3\n"
        "plot {} with lines lw 1.5 lc rgb '{}'",
        k, function, i + 2 < dimensions.size() ? "" : row_name(recipe), curve, colour);
    if (length <= 200) {
      script +=
          fmt::format(", $table using 0:{} with points pt 7 ps 0.35 lc rgb '{}'", k + 1, colour);
    }
    script += "\n";
  }
  return {"waveforms", 1000, static_cast<int>(height), script + "unset multiplot\n"};
}

// A colour range shared by several maps: that of all `cells`.
std::string shared_colour_range(const SinusoidOptions& recipe, const at::Tensor& cells) {
  const std::string unit = colour_range(recipe);
  return unit.empty() ? fmt::format("set cbrange [{}:{}]\n", cells.min().item<double>(),
                                    cells.max().item<double>())
                      : unit;
}

// White lines between the slices of a grid with more than two axes.
std::string slice_lines(int64_t rows, int64_t rows_of_slice, int64_t columns) {
  std::string lines;
  if (rows / rows_of_slice > kMostSlices) return lines;
  for (int64_t row = rows_of_slice; row < rows; row += rows_of_slice) {
    lines +=
        fmt::format("set arrow from -0.5,{0}.5 to {1}.5,{0}.5 nohead front lw 2 lc rgb '#ffffff'\n",
                    row - 1, columns - 1);
  }
  return lines;
}

// A small map of the grid for some channels of each axis. For a grid with more than two axes, the
// slices are stacked vertically. Cells are square unless a map would become too flat or too high.
Figure grid_maps(const std::string& preset, const SinusoidOptions& recipe,
                 const at::Tensor& table) {
  const auto& grid = recipe.grid();
  const int64_t columns = grid.back();
  const auto cells = table.slice(0, recipe.cls_row() ? 1 : 0);
  const int64_t rows = cells.size(0) / columns;
  const auto channels = shown_grid_channels(grid, cells);
  // In pixels: margins, the space between maps, and the width of a map.
  constexpr double width = 1000, left = 50, right = 90, top = 80, bottom = 40, across = 60,
                   down = 75, map_width = (width - left - right - 2 * across) / 3;
  const double map_height =
      std::clamp(map_width * static_cast<double>(rows) / static_cast<double>(columns), 80.0, 360.0);
  const auto panel_rows = static_cast<double>(grid.size());
  const double height = top + panel_rows * map_height + (panel_rows - 1) * down + bottom;
  std::string script = kViridis + image_axes(columns, rows) + shared_colour_range(recipe, cells) +
                       slice_lines(rows, grid[grid.size() - 2], columns);
  // One colour box, drawn with the first map.
  script += fmt::format("set colorbox user origin screen {},{} size screen {},{}\n", 1 - 65 / width,
                        bottom / height, 15 / width, 1 - (top + bottom) / height);
  std::string plots;
  for (std::size_t axis = 0; axis < channels.size(); ++axis) {
    for (int64_t i = 0; i < 3; ++i) {
      if (i >= static_cast<int64_t>(channels[axis].size())) {
        plots += "set multiplot next\n";
        continue;
      }
      const int64_t channel = channels[axis][static_cast<std::size_t>(i)];
      const std::string name = fmt::format("map{}_{}", axis, i);
      script += data_block(name, cells.select(1, channel).reshape({rows, columns}));
      plots += fmt::format(
          "set title 'Dimension {}, along axis {}' offset 0,-0.6\n"
          "plot ${} matrix with image\nunset colorbox\n",
          channel, axis, name);
    }
  }
  script += fmt::format(
      "set multiplot layout {},3 title 'Over the grid of {} cells{}: {}, D = {}' offset 0,-0.2 "
      "margins {},{},{},{} spacing {},{}\n",
      grid.size(), fmt::join(grid, " x "), grid.size() > 2 ? ", slice below slice" : "", preset,
      table.size(1), left / width, 1 - right / width, bottom / height, 1 - top / height,
      across / width, down / height);
  return {"waveforms", static_cast<int>(width), static_cast<int>(height),
          script + plots + "unset multiplot\n"};
}

Figure similarity(const std::string& preset, const SinusoidOptions& recipe,
                  const at::Tensor& table) {
  const int64_t length = table.size(0), dim = table.size(1);
  const auto rows = table.to(torch::kDouble);
  std::string script =
      data_block("similarity", rows.matmul(rows.t())) + kViridis + image_axes(length, length);
  script += fmt::format(
      "set title 'Similarity of positions, PE(p) · PE(q): {}, D = {}'\n"
      "set xlabel '{} q'\nset ylabel '{} p'\nset cblabel 'Dot product' offset 1.5,0\n"
      "set rmargin at screen 0.82\n"
      "set size ratio 1\nplot $similarity matrix with image\n",
      preset, dim, row_name(recipe), row_name(recipe));
  return {"similarity", 800, 700, script};
}

}  // namespace

std::string data_block(const std::string& name, const at::Tensor& matrix) {
  const auto rows = matrix.to(torch::kFloat).contiguous();
  const float* values = rows.const_data_ptr<float>();
  std::string text = "$" + name + " << EOD\n";
  auto out = std::back_inserter(text);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    for (int64_t k = 0; k < rows.size(1); ++k) fmt::format_to(out, "{:.6g} ", *values++);
    text += '\n';
  }
  return text + "EOD\n";
}

std::vector<Figure> figures(const std::string& preset, const SinusoidOptions& recipe,
                            int64_t length) {
  const auto table = sinusoid_table(recipe, length);
  const bool is_grid = recipe.grid().size() > 1;
  return {heat_map(preset, recipe, table),
          is_grid ? grid_maps(preset, recipe, table) : waveforms(preset, recipe, table),
          similarity(preset, recipe, table)};
}

std::string script_for(const Figure& figure, const std::string& format) {
  const bool png = format == "png";
  return fmt::format(
             "set encoding utf8\nset format '%g'\nset terminal {} noenhanced size {},{} "
             "font 'sans-serif,{}' background '#ffffff'\n",
             png ? "pngcairo" : "svg", figure.width, figure.height, png ? 12 : 15) +
         figure.script;
}

}  // namespace posenc::cli
