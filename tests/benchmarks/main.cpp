// Google Benchmark's main. With `--serve`, for tools/bench.py, each line of stdin is the exact name
// of a benchmark, which is run once and answered with a line `seconds label` or `error: text`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

class Answer : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    const Run& run = runs.front();
    if (run.error_occurred) {
      text = "error: " + run.error_message;
      return;
    }
    const double iterations = static_cast<double>(run.iterations);
    // As in the benchmark's own report: the thread's CPU time, unless another clock is requested.
    const bool by_thread = run.run_name.time_type.empty();
    const double seconds = by_thread ? run.cpu_accumulated_time : run.real_accumulated_time;
    text = std::to_string(seconds / iterations * 1e6) + "e-6 " +
           (run.report_label.empty() ? "-" : run.report_label);
  }
  std::string text = "error: there is no such benchmark";
};

std::string escaped(const std::string& name) {
  std::string regex;
  for (const char c : name) {
    if (std::strchr(".[]()*+?^$|\\{}", c) != nullptr) regex += '\\';
    regex += c;
  }
  return "^" + regex + "$";
}

}  // namespace

int main(int argc, char** argv) {
  bool serve = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--serve") != 0) continue;
    serve = true;
    std::rotate(argv + i, argv + i + 1, argv + argc--);
    break;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  if (!serve) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  for (std::string name; std::getline(std::cin, name);) {
    Answer answer;
    benchmark::RunSpecifiedBenchmarks(&answer, escaped(name));
    std::cout << answer.text << std::endl;
  }
  return 0;
}
