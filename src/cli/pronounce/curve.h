#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::cli {

/// How good a training was at a step.
struct CurvePoint {
  int64_t step = 0;
  double seconds = 0.0;  ///< of training and measuring until then
  double loss = 0.0;     ///< on the words that it learns from, lately
  double phoneme_error_rate = 0.0;
  double first_error_rate = 0.0;  ///< to the first pronunciation alone
  double words_right = 0.0;       ///< a share
};

/// The curve of a run, a file of JSON lines.
class Curve {
 public:
  /// Reads the points until `step`; those after it are of a run that was cut off there. Refuses
  /// what is no such file.
  Curve(std::string path, int64_t step);

  /// Adds a point and writes the file.
  void add(const CurvePoint& point);
  bool has(int64_t step) const;
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::string path_;
  std::vector<CurvePoint> points_;
};

/// A picture of the curve for gnuplot() to draw, PNG.
std::string curve_script(const std::vector<CurvePoint>& points);

}  // namespace posenc::cli
