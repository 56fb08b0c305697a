#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

// The lines of a file that are not empty.
inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.empty()) throw std::runtime_error(path + ": no lines of text");
  return lines;
}
