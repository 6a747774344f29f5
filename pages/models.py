import streamlit as st
st.write("x")
