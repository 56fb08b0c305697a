// posenc plot: draws a heat map, waveforms and position similarity as PNG and SVG, or the decay of
// rotary scores with distance.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/gnuplot.h"
#include "cli/params.h"
#include "cli/plot_rotary.h"
#include "cli/plot_scripts.h"
#include "cli/progress.h"
#include "cli/table_cases.h"
#include "io/base/atomic_file.h"
#include "posenc/io/error.h"
#include "posenc/sinusoid/preset.h"

namespace posenc::cli {
namespace {

struct PlotOptions {
  std::string folder, preset = "vaswani2017";
  bool rotary = false;
  int64_t dim = 128;
  std::optional<int64_t> length;
  std::vector<std::string> params;
};

constexpr int64_t kLength = 100;

constexpr int64_t kMostPixels = 32'767;  // per row of the images that gnuplot draws

constexpr int64_t kMostCells = int64_t{1} << 22;  // more are illegible and take minutes

void write_file(const std::string& path, const std::string& content) {
  try {
    io::AtomicFile file(path);
    file.write(content.data(), content.size());
    file.commit();
  } catch (const WeightsError& error) {
    fail("{}: {}", path, error.what());
  }
}

// gnuplot's SVG embeds each heat map as a small PNG, which viewers would blur.
std::string with_pixelated_images(std::string picture) {
  const std::string tag = "<image ";
  if (picture.find("</svg>") == std::string::npos) return picture;
  for (auto at = picture.find(tag); at != std::string::npos; at = picture.find(tag, at + 1)) {
    picture.insert(at + tag.size(), "style='image-rendering:pixelated' ");
  }
  return picture;
}

// Names and contents of the files. All are drawn before any is written, so that a failure does not
// leave an incomplete set.
std::vector<std::pair<std::string, std::string>> pictures_of(const std::vector<Figure>& figures) {
  std::vector<std::pair<std::string, std::string>> pictures;
  Progress progress("drawing");
  for (const auto& figure : figures) {
    for (const std::string format : {"png", "svg"}) {
      const std::string name = figure.name + "." + format;
      progress.show(name);
      pictures.emplace_back(name, with_pixelated_images(gnuplot(script_for(figure, format))));
    }
  }
  return pictures;
}

Figure rotary_figure(const PlotOptions& options) {
  const Params params(options.params);
  params.allow("plot --rotary", {"rope_theta", "factor"});
  RotaryPlot plot;
  plot.dim = options.dim;
  plot.length = options.length.value_or(plot.length);
  plot.base = params.real("rope_theta").value_or(plot.base);
  plot.factor = params.real("factor").value_or(plot.factor);
  if (plot.dim % 2 != 0 || plot.dim < 4) {
    fail("--dim must be even and at least 4 with --rotary. Got {}", plot.dim);
  }
  if (!(plot.base > 1.0)) fail("rope_theta must be above 1. Got {}", plot.base);
  if (!(plot.factor > 1.0) || plot.factor > static_cast<double>(plot.length) / 16) {
    fail("factor must be above 1, and at most --length / 16. Got {}", plot.factor);
  }
  return rotary_decay(plot);
}

std::vector<Figure> table_figures(const PlotOptions& options) {
  const SinusoidOptions recipe =
      preset(options.preset, options.dim, Params(options.params).for_preset());
  int64_t length = options.length.value_or(kLength);
  if (!recipe.grid().empty() && !options.length) {
    length = cells_of(recipe);
  }
  if (length < 2) fail("--length must be at least 2 for a plot. Got {}", length);
  if (length > kMostCells / std::max(options.dim, length)) {
    fail("--dim {} and --length {} are too many cells for a plot; at most {}", options.dim, length,
         kMostCells);
  }
  return figures(options.preset, recipe, length);
}

void plot(const PlotOptions& options) {
  const auto pictures = pictures_of(options.rotary ? std::vector<Figure>{rotary_figure(options)}
                                                   : table_figures(options));
  std::error_code error;
  const std::filesystem::path folder(options.folder);
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: {}", options.folder, error.message());
  for (const auto& [name, content] : pictures) write_file((folder / name).string(), content);
  for (const auto& [name, content] : pictures) fmt::print("{}\n", (folder / name).string());
}

}  // namespace

void add_plot(CLI::App& app) {
  auto options = std::make_shared<PlotOptions>();
  auto* sub = app.add_subcommand(
      "plot",
      "Plot a heat map, waveforms and the similarity of positions as PNG and SVG, with gnuplot; or "
      "how the scores of rotary embeddings fall with distance.");
  sub->add_option("--out", options->folder, "folder for the files; created if it is missing")
      ->required()
      ->check(folder_path());
  auto* preset =
      sub->add_option("--preset", options->preset, "the preset; `posenc presets` lists them")
          ->capture_default_str()
          ->check(listed_choice("a preset", preset_names(), "`posenc presets`"));
  sub->add_flag("--rotary", options->rotary,
                "plot the score of a query with an equal key over their distance, for each scaling "
                "of rotary frequencies: rotary_decay.png and .svg")
      ->excludes(preset);
  sub->add_option("--dim", options->dim, "D, the number of channels; with --rotary, of a head")
      ->capture_default_str()
      ->check(whole(1, kMostPixels));
  sub->add_option("--length", options->length,
                  fmt::format("number of positions; default: {}, or the cells of a grid; with "
                              "--rotary the largest distance, by default {}",
                              kLength, RotaryPlot().length))
      ->check(whole(2, kMostRows));
  sub->add_option("--param", options->params,
                  "a parameter of the preset, key=value; with --rotary rope_theta (10000) or "
                  "factor (8): how "
                  "many times longer than the original context")
      ->check(assignment())
      ->allow_extra_args(false);
  sub->footer(
      "Example:\n  posenc plot --out pictures --preset vaswani2017 --dim 128 --length 100\n"
      "  posenc plot --out pictures --rotary --param factor=8");
  sub->callback([options] { plot(*options); });
}

}  // namespace posenc::cli
