#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pronounce {

/// The quality of a model after a number of training steps.
struct CurvePoint {
  int64_t step = 0;
  double seconds = 0.0;  ///< of training and measuring so far
  double loss = 0.0;     ///< on the training words, since the last report
  double phoneme_error_rate = 0.0;
  double first_error_rate = 0.0;  ///< against the first pronunciation alone
  double words_right = 0.0;       ///< a share
};

/// The learning curve of a run, kept in a file of JSON lines.
class LearningCurve {
 public:
  /// Reads the points up to `step`; later ones belong to a run that was interrupted after its last
  /// checkpoint. Throws where the file is not a learning curve.
  LearningCurve(std::string path, int64_t step);

  /// Adds a point and writes the file.
  void add(const CurvePoint& point);
  bool has(int64_t step) const;
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::string path_;
  std::vector<CurvePoint> points_;
};

/// A script for gnuplot() that draws the curve as PNG.
std::string plot_script(const std::vector<CurvePoint>& points);

}  // namespace pronounce
