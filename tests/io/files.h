#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "posenc/io/error.h"

// What tests of files need, without LibTorch.
namespace posenc::testing {

/// A folder that lives as long as the object.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "posenc-io-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

  /// How many entries the folder has: temporary files that were left behind count.
  std::size_t entries() const {
    using Iterator = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Iterator(path_), Iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The bytes of a safetensors file with this JSON header and data, right or wrong.
inline std::string crafted(const std::string& header, const std::string& data = "") {
  std::string length;
  for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

/// The WeightsError that `work` throws; anything else fails the test.
template <typename Work>
WeightsError error_of(Work&& work) {
  try {
    work();
  } catch (const WeightsError& error) {
    return error;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a WeightsError: " << error.what();
    return {WeightsErrorCode::Io, "another error"};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {WeightsErrorCode::Io, "no error"};
}

/// `Code: message` of it.
template <typename Work>
std::string refusal(Work&& work) {
  const WeightsError error = error_of(work);
  return std::string(name(error.code())) + ": " + error.what();
}

#define EXPECT_CONTAINS(text, part)                          \
  EXPECT_NE(std::string(text).find(part), std::string::npos) \
      << "in: " << (text) << "\nno: " << (part)

#define EXPECT_LACKS(text, part) \
  EXPECT_EQ(std::string(text).find(part), std::string::npos) << "in: " << (text)

}  // namespace posenc::testing
