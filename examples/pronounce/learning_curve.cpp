#include "learning_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "files.h"
#include "messages.h"

namespace pronounce {
namespace {

using Json = nlohmann::ordered_json;

// Calls `visit` with each field and its name in the file; `Point` may be const.
template <typename Point, typename Visit>
void curve_fields(Point& point, Visit&& visit) {
  visit("step", point.step);
  visit("seconds", point.seconds);
  visit("loss", point.loss);
  visit("phoneme_error_rate", point.phoneme_error_rate);
  visit("first_error_rate", point.first_error_rate);
  visit("words_right", point.words_right);
}

}  // namespace

LearningCurve::LearningCurve(std::string path, int64_t step) : path_(std::move(path)) {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    CurvePoint point;
    try {
      const auto json = Json::parse(line);
      curve_fields(point, [&](const char* name, auto& value) { json.at(name).get_to(value); });
    } catch (const nlohmann::json::exception&) {
      fail("{}: must be a learning curve, a line of JSON for each point. Got '{}'", path_, line);
    }
    if (point.step <= step) points_.push_back(point);
  }
}

void LearningCurve::add(const CurvePoint& point) {
  points_.push_back(point);
  std::string text;
  for (const auto& one : points_) {
    Json json;
    curve_fields(one, [&](const char* name, const auto& value) { json[name] = value; });
    text += json.dump() + "\n";
  }
  write_file(path_, text);
}

bool LearningCurve::has(int64_t step) const {
  return std::any_of(points_.begin(), points_.end(),
                     [&](const CurvePoint& point) { return point.step == step; });
}

std::string plot_script(const std::vector<CurvePoint>& points) {
  std::string data;
  double minutes = 0.001, errors = 1.0;  // gnuplot warns about an empty range
  for (const auto& point : points) {
    minutes = std::max(minutes, point.seconds / 60.0);
    errors = std::max(errors, 105.0 * std::max(point.phoneme_error_rate, 1.0 - point.words_right));
    data += fmt::format("{} {} {}\n", point.seconds / 60.0, 100.0 * point.phoneme_error_rate,
                        100.0 * (1.0 - point.words_right));
  }
  return fmt::format(
      "$curve << EOD\n{}EOD\n"
      "set terminal pngcairo size 760,440 font 'sans,11'\n"
      "set title 'Errors on the held-out words'\n"
      "set xlabel 'minutes'\nset ylabel '%'\n"
      "set xrange [0:{}]\nset yrange [0:{}]\n"
      "set grid\nset key top right\n"
      "plot $curve using 1:2 with linespoints lw 2 pt 7 ps 0.6 title 'phonemes', "
      "$curve using 1:3 with linespoints lw 2 pt 7 ps 0.6 title 'words'\n",
      data, minutes, errors);
}

}  // namespace pronounce
