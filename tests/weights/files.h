#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "posenc/weights/error.h"
#include "support/temp_dir.h"

// Helpers for tests of files, without tensors.
namespace posenc::testing {

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The bytes of a safetensors file with this JSON header and data, valid or not.
inline std::string crafted(const std::string& header, const std::string& data = "") {
  std::string length;
  for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + data;
}

/// Returns the WeightsError that `work` throws; any other outcome fails the test.
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

/// The error's `Code: message`.
template <typename Work>
std::string refusal(Work&& work) {
  const WeightsError error = error_of(work);
  return std::string(to_string(error.code())) + ": " + error.what();
}

#define EXPECT_CONTAINS(text, part)                          \
  EXPECT_NE(std::string(text).find(part), std::string::npos) \
      << "in: " << (text) << "\nno: " << (part)

#define EXPECT_LACKS(text, part) \
  EXPECT_EQ(std::string(text).find(part), std::string::npos) << "in: " << (text)

}  // namespace posenc::testing
