#include "support/fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "posenc/weights/safetensors.h"

namespace posenc::testing {
namespace fs = std::filesystem;

StateDict Fixture::under(const std::string& prefix) const {
  StateDict result;
  for (const auto& item : tensors) {
    if (item.key().rfind(prefix, 0) == 0) {
      result.insert(item.key().substr(prefix.size()), item.value());
    }
  }
  return result;
}

Golden Fixture::golden() const {
  SafetensorsFile file;
  file.metadata = {{"golden", "1"}, {"outputs", "output"}, {"module", "the reference class"}};
  for (const auto& item : tensors) {
    std::string key = item.key();
    if (key == "in.cotangent") {
      key = "cotangent.output";
    } else if (key.starts_with("grad.") && !key.starts_with("grad.in.")) {
      key.insert(5, "param.");
    } else if (key.starts_with("in.")) {
      file.metadata["inputs"] += key.substr(3) + "\n";
    }
    file.tensors.insert(key, at::Tensor(item.value()));
  }
  return {name, file};
}

std::vector<Fixture> fixtures(const std::string& stem, const std::string& start) {
  std::vector<Fixture> found;
  for (const bool live : {false, true}) {
    const fs::path root = live ? POSENC_LIVE_DIR "/fixtures" : POSENC_FIXTURES_DIR;
    if (!fs::is_directory(root / stem)) continue;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(root / stem)) {
      const bool is_requested = entry.path().extension() == ".safetensors" &&
                                entry.path().stem().string().rfind(start, 0) == 0;
      if (is_requested) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const SafetensorsFile content = load_safetensors(file.string());
      const std::string name = (live ? "live/" : "committed/") + stem + "/" + file.stem().string();
      found.push_back({name, live, nlohmann::json::parse(content.metadata.at("options")),
                       std::stoll(content.metadata.at("seed")), content.tensors});
    }
  }
  EXPECT_FALSE(found.empty()) << "no fixture " << stem << "/" << start
                              << "*: run `make fixtures`, and ctest's reference.live";
  return found;
}

std::vector<Fixture> fixtures(const std::string& stem) { return fixtures(stem, ""); }

}  // namespace posenc::testing
