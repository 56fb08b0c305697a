#include "learning_curve.h"

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

}  // namespace pronounce
