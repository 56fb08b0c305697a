#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pronounce {

/// The quality of a model after a number of training steps.
struct CurvePoint {
  int64_t step = 0;
  double seconds = 0.0;  ///< training and evaluation so far
  double loss = 0.0;     ///< on the training words, since the last report
  double phoneme_error_rate = 0.0;
  double first_error_rate = 0.0;  ///< counting only the first pronunciation as correct
  double words_right = 0.0;       ///< fraction
};

/// The learning curve of a run, kept in a file of JSON lines, which `tools/plot.py pronounce`
/// draws.
class LearningCurve {
 public:
  /// Reads the points up to `step`; later ones were added after the last checkpoint of a run that
  /// was interrupted. Throws if the file is not a learning curve.
  LearningCurve(std::string path, int64_t step);

  /// Adds a point and writes the file.
  void add(const CurvePoint& point);
  bool has(int64_t step) const;
  const std::vector<CurvePoint>& points() const { return points_; }

 private:
  std::string path_;
  std::vector<CurvePoint> points_;
};

}  // namespace pronounce
